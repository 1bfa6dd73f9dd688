-- Records the heartbeat of a node, and counts the live nodes.
--
-- KEYS  [1] the sorted set of nodes by their last heartbeat
-- ARGV  [1] the node, [2] microseconds after which a node without a heartbeat is removed; 0 removes this node
-- Returns the number of live nodes, including this one.

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local silence = tonumber(ARGV[2])
if silence == 0 then
  local count = call('ZCARD', KEYS[1])
  return count - call('ZREM', KEYS[1], ARGV[1])
end
call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - silence))
call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(silence / 1000) + 1000))
return call('ZCARD', KEYS[1])
