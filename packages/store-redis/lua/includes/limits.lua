-- Decodes limits, which are part of every call: records do not contain them, so a changed limit applies at once.

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
    -- Maximum units that can be charged at once.
    capacity = capacity,
    -- Units of a window or slots; micro-units of a full bucket.
    limit = limit, window = window,
    -- Maximum units carried over (windows), maximum micro-units rolled over (buckets), or the number of sub-windows.
    extra = extra,
    -- The burst of a hybrid in micro-units, and its rate; the rate of a bucket.
    burst = burst, units = units, micros = micros,
    -- The base limit of a hybrid.
    base = base, base_capacity = base_capacity,
    -- Start times of consecutive calendar periods; the last one only ends a period.
    edges = edges,
  }, after
end

-- All limits of a call, which follow its header in ARGV[1], and the position after them.
local function read_limits()
  local count, at = unpack_binary('<H', ARGV[1], 19)
  local limits = {}
  for index = 1, count do limits[index], at = read_limit(ARGV[1], at) end
  return limits, at
end
