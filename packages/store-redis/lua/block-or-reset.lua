-- Blocks a subject under a rule, or forgets what it has used, or both in one step.
--
-- KEYS  [1] the subject's record, [2 ..] long states to forget
-- ARGV  [1] the opening (see includes/call-header.lua)
--       [2] `micros d`: how long to block; 0 and below forget, a block too
--       [3] tags of entries, 8 bytes each, all to forget; of a block the first is its own
-- Returns one string: `now d, done B`: 1 when done, 0 when reservations of the subject have run out and must be given back first.

-- @include rate-arithmetic
-- @include call-header
-- @include records
-- @include holds

local micros = unpack_binary('<d', ARGV[2])
if holds_due(1, now) then return pack('<dB', now, 0) end
local dropped = {}
for place = 1, #ARGV[3], 8 do dropped[string.sub(ARGV[3], place, place + 7)] = true end
if micros > 0 then
  local values, at = rebuild(1, dropped, now, string.sub(ARGV[3], 1, 8), 1)
  values[at], values[at + 1] = now + micros, now + micros
else
  rebuild(1, dropped, now)
end
for key = 2, records do call('DEL', KEYS[key]) end
changed[1] = true
save_records(now, slack)
return pack('<dB', now, 1)
