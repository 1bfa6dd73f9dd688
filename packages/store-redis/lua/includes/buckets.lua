-- Buckets that leak at a constant rate: values[at + 1] is the level in micro-units at time values[at + 2].

-- The level at `now`, and `now`, but not before the stored time.
local function level_at(values, at, limit, now)
  if not at then return 0, now end
  local since = values[at + 2]
  if since > now then now = since end
  return max(0, values[at + 1] - flowed(limit.units, limit.micros, now - since)), now
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

-- Corrects a charge: what has leaked since is not refunded. Returns the units applied and when the state is fresh.
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

-- Only the last in a queue can be refunded: those behind any other already know their delay.
local function queue_correct(values, at, limit, now, units, charge, to)
  if units >= 0 or not is_last(values, at, limit, now, charge) then
    return meter_correct(values, at, limit, now, max(0, units), charge, to)
  end
  local fresh = { at = max(now, values[at + 2]), cost = charge.cost, mark = charge.mark }
  return meter_correct(values, at, limit, now, units, fresh, to)
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
