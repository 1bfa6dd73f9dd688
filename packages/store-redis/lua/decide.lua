-- Decides batches, each over any set of limits: either all limits of a batch are charged, or none.
--
-- A script creates its functions in every call, which takes longer than most decisions. So there are five paths, and
-- the functions of a path are created when a check needs them:
--   0. includes/single-bucket-check.lua  one check of one key by one bucket, and nothing else
--   1. includes/single-limit-checks.lua  keys with one limit each, a bucket or a simple window
--   2. includes/bulk-bucket-checks.lua   keys with several buckets
--   3. includes/simple-batches.lua       any buckets and simple windows
--   4. includes/general-batches.lua      everything else The first three store each record at once, the others store
-- all changed records at the end. So after the first key that needs path 3 or 4, all following checks take these.
--
-- KEYS  [1 .. records]  records, then long states
--       [records + 1 ..] two for each key with a reservation: its set and its hash of holds
-- ARGV  [1] the call header (see includes/call-header.lua), the limits (see includes/limits.lua), and bulk checks, each
--           `limits H, cost d, keys H`, the indexes of the limits `H*`, and for each key `key H, times H`: the key is
--           checked against the limits, and charged, `times` times in a row. Buckets and simple windows only.
--       [2] general batches, optional: `flags B, times H, items H, holder d, span d`, then for each item
--           `limit H, key H, long H, holds H, cost d`. Flags: 1 charge, 2 partial, 4 entitled, 8 hold for `span`
--           microseconds, 16 lease for `span`. `times`: how many equal batches there are. `long` and `holds` are 0 when
--           there is none.
--       [3 ..] for each item that is held, its limit, to be stored with the reservation
-- Returns one string: `now d`, then for each key of each bulk check `admitted H, form B`: with 0 there was no record,
--   with 1 the previous record follows, with 3 the reply to a general batch, starting with its `admitted`, with 4
--   `kept d, at d, level d*` after the charge. Then for each batch `admitted H`: how many of its times were allowed.
--   65535 means not decided, and `reason B` follows: 1 reservations have expired, 2 `now` is outside the calendar
--   periods of the limit.
--   Otherwise `granted d` when partial, and for each item `flags B` (1 a state follows, 2 a block, 4 leases, 8 would be
--   allowed), `blocked until d`, `leased units d, soonest end d`, and the previous state: the values of a small one;
--   `count H, values d*` of a ring, or of a log under a burst; for a log or slots the decision instead of the state:
--   `remaining d, reset d, retry d` (retry -1: never). The caller computes the decisions of the others from the state,
--   with the functions that decide in memory.

-- @include single-bucket-check
-- @include call-header
-- @include single-limit-checks
-- @include rate-arithmetic
-- @include bulk-bucket-checks

-- Paths 3 and 4. A function, because functions are created faster inside of one: to create a function, Lua searches the
-- captured locals of the running function for each one it uses, and here these are few.
local function decide_the_rest()
  -- @include limits
  -- @include key-records
  -- @include buckets-and-windows

  local limits, after_limits = read_limits()

  -- @include simple-batches

  -- Creates the functions of path 4. Returns the one that decides any batch, and the one that stores long states.
  local function general_decider()
    -- @include corrections
    -- @include logs-and-slots
    -- @include algorithms
    -- @include leases
    -- @include reservations
    -- @include general-batches
    return decide_batch, save_longs
  end

  -- The flags of a simple batch: 1 charge and 4 entitled.
  local CHARGED = 5
  local decide_in_general, save_longs

  -- Decides a batch on path 3, or else on path 4. `fields.rest` is set for a key of a bulk check.
  local function decide(flags, times, fields, count, holder, span)
    if flags == CHARGED and decide_simple_batch(fields, count, times, fields.rest) then return end
    if fields.rest then out[#out + 1] = '\0\0\3' end
    if not decide_in_general then decide_in_general, save_longs = general_decider() end
    decide_in_general(flags, times, fields, count, holder, span)
  end

  -- A bulk check as a batch whose key is not set yet.
  local function batch_of(numbers, count, cost)
    local fields, parts = {}, { pack('<H', count) }
    for index = 1, count do
      local field, limit = 5 * index, limits[numbers[index]]
      fields[field - 4], fields[field - 3], fields[field - 2] = numbers[index], 0, 0
      fields[field - 1], fields[field] = 0, cost
      parts[index + 1] = pack('<c8H', limit.tag, limit.size)
    end
    fields.rest = table.concat(parts)
    return fields
  end

  -- Decides one key of a bulk check.
  local function decide_key(fields, count, key, times)
    for index = 1, count do fields[5 * index - 3] = key end
    decide(CHARGED, times, fields, count, 0, 0)
  end

  if skipped then
    local all, count = out, #skipped.numbers
    local fields = batch_of(skipped.numbers, count, skipped.cost)
    for index = 1, #skipped, 3 do
      out = {}
      decide_key(fields, count, skipped[index], skipped[index + 1])
      all[skipped[index + 2]] = table.concat(out)
    end
    out = all
  end

  local at = checks_at or after_limits
  while at <= size do
    local limit_count, cost, count, numbers_at = unpack_binary('<HdH', argument, at)
    local numbers = { unpack_binary('<' .. string.rep('H', limit_count), argument, numbers_at) }
    local fields = batch_of(numbers, limit_count, cost)
    at = numbers[limit_count + 1]
    for _ = 1, count do
      local key, times
      key, times, at = unpack_binary('<HH', argument, at)
      decide_key(fields, limit_count, key, times)
    end
  end

  local batches = ARGV[2] or ''
  at = 1
  while at <= #batches do
    local flags, times, count, holder, span, items_at = unpack_binary('<BHHdd', batches, at)
    local fields = { unpack_binary('<' .. string.rep('HHHHd', count), batches, items_at) }
    at = fields[5 * count + 1]
    decide(flags, times, fields, count, holder, span)
  end

  save_records(now, slack)
  if save_longs then save_longs(now, slack) end
end

decide_the_rest()
return table.concat(out)
