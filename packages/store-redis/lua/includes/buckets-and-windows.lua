-- Buckets that leak at a constant rate: values[at + 1] is the level in micro-units at time values[at + 2]. `at` is nil
-- when nothing is stored.
--
-- Invariant: what leaks is rounded down, and time never goes back behind the stored time. So no micro-unit leaks twice,
-- and no cost is admitted early.

-- The level at `now`, and `now`, but not before the stored time.
local function level_at(values, at, limit, now)
  if not at then return 0, now end
  local level, since = values[at + 1], values[at + 2]
  if since >= now then return level, since end
  local flow = flowed(limit.units, limit.micros, now - since)
  return level > flow and level - flow or 0, now
end

-- Units left in a bucket of `full` micro-units, below 0 when overdrawn.
local function meter_left(values, at, limit, full, now)
  return floor((full - level_at(values, at, limit, now)) / UNIT)
end

-- Writes the level with `units` more to values[to + 1 ...]. Returns when it is fresh, and the level.
local function meter_write(values, at, limit, now, units, to)
  local level, since = level_at(values, at, limit, now)
  local after = level + units * UNIT
  values[to + 1], values[to + 2] = after, since
  return since + time_to_flow(limit.units, limit.micros, after), after
end

-- Fixed windows and sliding counters, on values[at + 1 ...]; `at` is nil when nothing is stored.
--
-- A fixed window is `start, used`, with rollover `start, used, carried`; a sliding counter `start, units of the window
-- before, units of this one`.
--
-- Invariant: the window is that of `now` or of the stored start, whichever is later. So a clock that goes back reopens
-- no window.

-- The start and the end of the window around `now`; nil when it is outside the calendar periods of the limit.
local function window_of(limit, now)
  local edges = limit.edges
  if not edges then
    local start = now - now % limit.window
    return start, start + limit.window
  end
  for index = 1, #edges - 1 do
    if now >= edges[index] and now < edges[index + 1] then return edges[index], edges[index + 1] end
  end
end

-- Units carried into the window that begins at `start`; nil outside the calendar periods of the limit.
local function carried_into(values, at, limit, start)
  local most = limit.extra
  local carried = max(0, min(most, values[at + 3] or 0))
  if values[at + 1] >= start then return carried end
  local before = window_of(limit, start - 1)
  if not before then return nil end
  if values[at + 1] >= before then return max(0, min(most, limit.limit + carried - values[at + 2])) end
  local earlier = window_of(limit, before - 1)
  if not earlier then return nil end
  return values[at + 1] >= earlier and most or 0
end

-- The current window: its start, its end, the units used in it, and the units carried into it. Nil outside the calendar
-- periods of the limit.
local function fixed_at(values, at, limit, now)
  if at and values[at + 1] > now then now = values[at + 1] end
  local start, finish = window_of(limit, now)
  if not start or not at then return start, finish, 0, 0 end
  local used = values[at + 1] >= start and values[at + 2] or 0
  if limit.extra == 0 then return start, finish, used, 0 end
  local carried = carried_into(values, at, limit, start)
  if carried then return start, finish, used, carried end
end

-- Units left, below 0 when overdrawn; nil outside the calendar periods of the limit.
local function fixed_left(values, at, limit, now)
  local start, _, used, carried = fixed_at(values, at, limit, now)
  return start and limit.limit + carried - used
end

-- The state with `units` more, written to values[to + 1 ...]; returns when it is fresh.
local function fixed_write(values, at, limit, now, units, to)
  local start, finish, used, carried = fixed_at(values, at, limit, now)
  values[to + 1], values[to + 2] = start, used + units
  if limit.extra == 0 then return finish end
  values[to + 3] = carried
  local edges = limit.edges
  return finish + 2 * (edges and edges[#edges] - edges[1] or limit.window)
end

-- The start of the current window, the units of the window before it, and its own.
local function counts_at(values, at, limit, now)
  if not at then return window_of(limit, now), 0, 0 end
  local stored = values[at + 1]
  local start = window_of(limit, stored > now and stored or now)
  if stored >= start then return start, values[at + 2], values[at + 3] end
  return start, stored >= start - limit.window and values[at + 3] or 0, 0
end

-- Units left under these counts: the window before counts by the part of it that is still in view, rounded up.
local function counter_left(limit, now, start, previous, current)
  local elapsed = now > start and now - start or 0
  return limit.limit - ceil(previous * (limit.window - elapsed) / limit.window) - current
end

-- The state with `units` more, written to values[to + 1 ...]; returns when it is fresh.
local function counter_write(values, at, limit, now, units, to)
  local start, previous, current = counts_at(values, at, limit, now)
  values[to + 1], values[to + 2], values[to + 3] = start, previous, current + units
  return start + (current + units > 0 and 2 or 1) * limit.window
end
