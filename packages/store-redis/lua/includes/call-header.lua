-- The header of every call: ARGV[1] starts with `now d, slack d, records H`: the caller's time in microseconds (0: the
-- server's), milliseconds to add to the expiry of keys, and the number of keys to read: all records and long states.

local VERSION, SHARED = 1, 2
local now, slack, records = unpack_binary('<ddH', ARGV[1])
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local raws = call('MGET', unpack(KEYS, 1, records))

-- How long to keep a key, in milliseconds: at least `micros` and one second. Rounded up to powers of two and three
-- quarters of them, so that few strings are created; keys may always be kept longer than needed. `slack` is for callers
-- that do not use the server's time.
local LONGEST = 315360000000

local function keep_ms(micros, slack)
  local ms = micros / 1000 + 1000 + slack
  local _, exponent = math.frexp(ms)
  local most = 2 ^ exponent
  if ms <= most * 0.75 then most = most * 0.75 end
  return most < LONGEST and ceil(most) or LONGEST
end

-- The part of that time that a record may rely on.
local function keep_micros(micros, slack)
  return (keep_ms(micros, slack) - 500) * 1000
end

local keeping = {}

local function keep_for(micros, slack)
  local ms = keep_ms(micros, slack)
  local text = keeping[ms]
  if not text then
    text = string.format('%.0f', ms)
    keeping[ms] = text
  end
  return text
end
