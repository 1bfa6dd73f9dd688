-- Limits, as they travel with every call: what is stored never holds one, so a changed limit applies at once.

-- Reads one limit from `blob` at `at`. Returns it and the position after it.
local function read_limit(blob, at)
  local kind, tag, block, lease, capacity, limit, window, extra, burst, units, micros, base, base_capacity, bounds, after =
    unpack_binary('<Bc8c8c8dddddddddB', blob, at)
  local edges
  if bounds > 0 then
    edges = { unpack_binary('<' .. string.rep('d', bounds), blob, after) }
    after = edges[bounds + 1]
    edges[bounds + 1] = nil
  end
  return {
    kind = kind, tag = tag, block = block, lease = lease,
    -- Most units that can be taken at one instant.
    capacity = capacity,
    -- Units of a window or slots; of a level the micro-units that it holds when full.
    limit = limit, window = window,
    -- Units carried over at most (windows), micro-units rolled over at most (levels), or the number of sub-windows.
    extra = extra,
    -- The burst of a hybrid in micro-units, and its rate; the rate of a level.
    burst = burst, units = units, micros = micros,
    -- What a hybrid lies over.
    base = base, base_capacity = base_capacity,
    -- First instants of consecutive periods of the calendar; the last one only ends a period.
    edges = edges,
  }, after
end

-- All limits of a call, which follow its opening in ARGV[1], and the position after them.
local function read_limits()
  local count, at = unpack_binary('<H', ARGV[1], 19)
  local limits = {}
  for index = 1, count do limits[index], at = read_limit(ARGV[1], at) end
  return limits, at
end
