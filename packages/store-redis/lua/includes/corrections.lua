-- Corrections of earlier charges on buckets and windows. `charge` is the earlier charge: its time `at`, its cost in
-- units, and its mark. Each function writes to values[to + 1 ...].

-- The time of a correction that belongs to no charge: the most recent units are refunded.
local LATEST = -1

-- Corrects a bucket: what has leaked since the charge is not refunded. Returns the units applied and when the state is
-- fresh.
local function meter_correct(values, at, limit, now, units, charge, to)
  local level, since = level_at(values, at, limit, now)
  local after
  if units >= 0 then
    after = min(SAFE, level + units * UNIT)
  else
    local owed = charge.at == LATEST and -units * UNIT
      or charge.cost * UNIT - flowed(limit.units, limit.micros, max(0, since - charge.at))
    after = max(0, level - max(0, min(-units * UNIT, owed)))
  end
  values[to + 1], values[to + 2] = after, since
  return (after - level) / UNIT, since + time_to_flow(limit.units, limit.micros, after)
end

-- Whether a charge is still the last in a queue: the level is what it left, less what has leaked since.
local function is_last(values, at, limit, now, charge)
  if not at or charge.at == LATEST then return false end
  local left = charge.mark - flowed(limit.units, limit.micros, max(0, now - charge.at))
  local level = values[at + 1] - flowed(limit.units, limit.micros, max(0, now - values[at + 2]))
  return left > 0 and math.abs(level - left) < UNIT / 2
end

-- Corrects a queue. Only the last in it can be refunded: those behind any other already know their delay.
local function queue_correct(values, at, limit, now, units, charge, to)
  if units >= 0 or not is_last(values, at, limit, now, charge) then
    return meter_correct(values, at, limit, now, max(0, units), charge, to)
  end
  local fresh = { at = max(now, values[at + 2]), cost = charge.cost, mark = charge.mark }
  return meter_correct(values, at, limit, now, units, fresh, to)
end

-- The units by which a fixed window can be corrected: only what was charged in this window can be refunded.
local function fixed_applied(values, at, limit, now, units, charge)
  if units >= 0 then return units end
  local start, finish, used = fixed_at(values, at, limit, now)
  if not start then return 0 end
  if charge.at ~= LATEST and (charge.at < start or charge.at >= finish) then return 0 end
  return -min(-units, charge.cost, used)
end

-- Corrects a sliding counter in the window that the charge was made in. Returns the units applied and when the state is
-- fresh.
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

-- Buckets with rollover: values[at + 1] micro-units in use at time values[at + 2], values[at + 3] rolled over. What has
-- rolled over expires when, since the bucket was full, twice its capacity has leaked.

-- The micro-units in use, below 0 when tokens have rolled over; `now`, not before the stored time; whether the state
-- counts.
local function rollover_net(values, at, limit, now)
  if not at then return 0, now, false end
  local level, since = values[at + 1], values[at + 2]
  if since > now then now = since end
  local flow = flowed(limit.units, limit.micros, now - since)
  if flow >= level + 2 * limit.limit then return 0, now, false end
  return max(-limit.extra, level - values[at + 3] - flow), now, true
end

local function rollover_left(values, at, limit, now)
  return floor((limit.limit - rollover_net(values, at, limit, now)) / UNIT)
end

-- Writes a net use to values[to + 1 ...]. Returns when it is fresh.
local function rollover_write(limit, now, net, values, to)
  values[to + 1], values[to + 2], values[to + 3] = max(0, net), now, max(0, -net)
  return now + time_to_flow(limit.units, limit.micros, values[to + 1] + 2 * limit.limit)
end

-- Corrects a charge. Returns the units applied and when the state is fresh.
local function rollover_correct(values, at, limit, now, units, charge, to)
  local net, since, is_known = rollover_net(values, at, limit, now)
  local after
  if units >= 0 then
    after = min(SAFE, net + units * UNIT)
  elseif charge.at == LATEST then
    -- Only the correction of a charge can restore what had rolled over; otherwise use ends at 0.
    after = max(min(0, net), net + units * UNIT)
  else
    local owed = charge.cost * UNIT - flowed(limit.units, limit.micros, max(0, since - charge.at))
    after = max(is_known and -limit.extra or 0, net - max(0, min(-units * UNIT, owed)))
  end
  local fresh = rollover_write(limit, since, after, values, to)
  return (after - net) / UNIT, fresh
end
