-- How every call begins: ARGV[1] has `now d, slack d, records H`, the caller's time in microseconds (0 for the server's),
-- milliseconds to keep keys longer, and how many keys to read: all records and long states, at once.

local VERSION, SHARED = 1, 2
local now, slack, records = unpack_binary('<ddH', ARGV[1])
if now == 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local raws = call('MGET', unpack(KEYS, 1, records))

-- How long to keep a key, in milliseconds: at least `micros` and a second more. Rounded up to powers of two and three
-- quarters of them, so that few texts are made; keys may always be kept longer than they mean something. `slack` is for callers
-- whose time is not the server's.
local LONGEST = 315360000000

local function keep_ms(micros, slack)
  local ms = micros / 1000 + 1000 + slack
  local _, exponent = math.frexp(ms)
  local most = 2 ^ exponent
  if ms <= most * 0.75 then most = most * 0.75 end
  return most < LONGEST and ceil(most) or LONGEST
end

-- What of that a record may count on.
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
