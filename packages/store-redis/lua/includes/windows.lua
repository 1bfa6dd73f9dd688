-- Fixed windows and sliding counters, on values[at + 1 ...]; `at` is nil when nothing is stored.

-- The window around `now`; nil when it is outside the calendar periods of the limit.
local function window_of(limit, now)
  local edges = limit.edges
  if not edges then
    local start = floor(now / limit.window) * limit.window
    return start, start + limit.window
  end
  for index = 1, #edges - 1 do
    if now >= edges[index] and now < edges[index + 1] then return edges[index], edges[index + 1] end
  end
end

local function window_now(values, at, limit, now)
  if at and values[at + 1] > now then now = values[at + 1] end
  return window_of(limit, now)
end

local function used_in(values, at, start)
  return at and values[at + 1] >= start and values[at + 2] or 0
end

local function clamp_carry(limit, unused)
  return max(0, min(limit.extra, unused))
end

local function carried_into(values, at, limit, start)
  if limit.extra == 0 or not at then return 0 end
  local carried = clamp_carry(limit, values[at + 3] or 0)
  if values[at + 1] >= start then return carried end
  local before = window_of(limit, start - 1)
  if not before then return nil end
  if values[at + 1] >= before then return clamp_carry(limit, limit.limit + carried - values[at + 2]) end
  local earlier = window_of(limit, before - 1)
  if not earlier then return nil end
  return values[at + 1] >= earlier and limit.extra or 0
end

local function fixed_fresh(limit, finish)
  if limit.extra == 0 then return finish end
  if limit.edges then return finish + 2 * (limit.edges[#limit.edges] - limit.edges[1]) end
  return finish + 2 * limit.window
end

-- Units left, below 0 when overdrawn; nil outside the calendar periods of the limit.
local function fixed_left(values, at, limit, now)
  local start = window_now(values, at, limit, now)
  if not start then return nil end
  local carried = carried_into(values, at, limit, start)
  return carried and limit.limit + carried - used_in(values, at, start)
end

-- The state with `units` more, written to values[to + 1 ...]; returns when it is fresh.
local function fixed_write(values, at, limit, now, units, to)
  local start, finish = window_now(values, at, limit, now)
  local used, carried = used_in(values, at, start), carried_into(values, at, limit, start)
  values[to + 1], values[to + 2] = start, used + units
  if limit.extra > 0 then values[to + 3] = carried end
  return fixed_fresh(limit, finish)
end

-- The units that can be corrected: only what was charged in this window can be refunded.
local function fixed_applied(values, at, limit, now, units, charge)
  if units >= 0 then return units end
  local start, finish = window_now(values, at, limit, now)
  if not start then return 0 end
  if charge.at ~= LATEST and (charge.at < start or charge.at >= finish) then return 0 end
  return -min(-units, charge.cost, used_in(values, at, start))
end

local function counts_at(values, at, limit, now)
  local window = limit.window
  if not at then return floor(now / window) * window, 0, 0 end
  local start = floor(max(now, values[at + 1]) / window) * window
  if values[at + 1] >= start then return start, values[at + 2], values[at + 3] end
  return start, values[at + 1] >= start - window and values[at + 3] or 0, 0
end

local function counter_left(values, at, limit, now)
  local start, previous, current = counts_at(values, at, limit, now)
  local elapsed = max(0, min(limit.window, now - start))
  return limit.limit - ceil(previous * (limit.window - elapsed) / limit.window) - current
end

local function counter_write(values, at, limit, now, units, to)
  local start, previous, current = counts_at(values, at, limit, now)
  values[to + 1], values[to + 2], values[to + 3] = start, previous, current + units
  return start + (current + units > 0 and 2 or 1) * limit.window
end

-- Corrects a charge in the window it was made in. Returns the units applied and when the state is fresh.
local function counter_correct(values, at, limit, now, units, charge, to)
  local start, previous, current = counts_at(values, at, limit, now)
  local applied = units
  if units >= 0 then
    current = current + units
  elseif charge.at == LATEST then
    local of_current = min(-units, current)
    local of_previous = min(-units - of_current, previous)
    applied = -(of_current + of_previous)
    current, previous = current - of_current, previous - of_previous
  elseif charge.at >= start then
    applied = -min(-units, charge.cost, current)
    current = current + applied
  elseif charge.at >= start - limit.window then
    applied = -min(-units, charge.cost, previous)
    previous = previous + applied
  else
    applied = 0
  end
  values[to + 1], values[to + 2], values[to + 3] = start, previous, current
  return applied, start + (current > 0 and 2 or 1) * limit.window
end
