-- What every script starts with: constants, the header of the call, and the stored records.
--
-- ARGV[1] starts with `now d, slack d, records H`: the caller's time in microseconds (0: the server's), milliseconds to
-- add to the expiry of keys, and the number of keys to read: all records and long states.
--
-- Units everywhere: times in microseconds since 1970, durations in microseconds, unless a name ends in `ms`. Buckets
-- count micro-units (UNIT of them are one unit), everything else counts units. All are whole numbers up to SAFE.

local call, pack, unpack_binary = redis.call, struct.pack, struct.unpack

local SAFE = 9007199254740991
local UNIT = 1000000

-- The numbers of algorithms. METER is a bucket level: token bucket, leaky bucket and GCRA are the same here.
local METER, QUEUE, FIXED, COUNTER = 1, 2, 3, 4
local LOG, SEGMENTS, HYBRID, SLOTS, ROLLOVER = 5, 6, 7, 8, 9

-- The first byte of a record: its form. See includes/key-records.lua.
local VERSION, SHARED = 1, 2

local now, slack, records = unpack_binary('<ddH', ARGV[1])
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- What is stored under each key, by its index; false when there is nothing.
local raws = records == 1 and call('MGET', KEYS[1]) or call('MGET', unpack(KEYS, 1, records))

-- A key that is checked again is kept for 8 seconds at least, so that most writes need not extend its expiry.
local AGAIN = 8000000

-- How long to keep a key, in milliseconds: at least `micros` and one second, at most ten years. Rounded up to a power
-- of two or three quarters of one; keys may always be kept longer than needed. `slack` is for callers that do not use
-- the server's time.
local function keep_ms(micros, slack)
  local ms = micros / 1000 + 1000 + slack
  local _, exponent = math.frexp(ms)
  local rounded = 2 ^ exponent
  if ms <= rounded * 0.75 then rounded = rounded * 0.75 end
  return rounded < 315360000000 and rounded or 315360000000
end
