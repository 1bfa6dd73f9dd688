-- Decodes limits, which are part of every call: records do not contain them, so a changed limit applies at once.

-- The number of values in the state of a window, with at most `extra` units carried over.
local function window_size(kind, extra)
  return (kind == COUNTER or extra > 0) and 3 or 2
end

-- The number of values in the state of a limit in the record; 0 when the state is stored elsewhere.
local function state_size(kind, extra, base)
  if kind == FIXED or kind == COUNTER then return window_size(kind, extra) end
  if kind == METER or kind == QUEUE then return 2 end
  if kind == ROLLOVER then return 3 end
  if kind ~= HYBRID then return 0 end
  return (base == FIXED or base == COUNTER) and 2 + window_size(base, extra) or 2
end

-- Reads one limit from `blob` at `at`. Returns it and the position after it. Limits are stored in this form with
-- reservations, so it must not change.
local function read_limit(blob, at)
  local kind, tag, block, lease, capacity, limit, window, extra, burst, units, micros, base, base_capacity, bounds,
    after = unpack_binary('<Bc8c8c8dddddddddB', blob, at)
  local edges
  if bounds > 0 then
    edges = { unpack_binary('<' .. string.rep('d', bounds), blob, after) }
    after = edges[bounds + 1]
    edges[bounds + 1] = nil
  end
  -- Buckets and windows without calendar periods and rollover; see includes/simple-batches.lua.
  local is_simple = (kind == METER or kind == FIXED or kind == COUNTER) and extra == 0 and bounds == 0 and capacity > 0
  return {
    kind = kind, size = state_size(kind, extra, base), is_simple = is_simple,
    -- The tags of its entries in a record: state, block and leases.
    tag = tag, block = block, lease = lease,
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
