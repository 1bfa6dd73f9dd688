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
