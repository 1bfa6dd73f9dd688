-- Blocks a key under a rule, deletes its counters, or both in one step.
--
-- KEYS  [1] the record of the key, [2 ..] long states to delete
-- ARGV  [1] the call header (see includes/call-header.lua)
--       [2] `micros d`: how long to block; 0 and below delete, a block too
--       [3] tags of entries to delete, 8 bytes each; when blocking, the first is the tag of the block
-- Returns one string: `now d, done B`: 1 when done, 0 when expired reservations of the key must be refunded first.

-- @include call-header
-- @include key-records
-- @include reservations

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
