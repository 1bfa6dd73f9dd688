-- Runs every command that the other scripts use, to find out whether the user has the permissions before a check
-- depends on them. Stores nothing.
--
-- KEYS  [1] a key that is used for nothing else

local call, key = redis.call, KEYS[1]
call('TIME')
call('DEL', key)
call('GET', key)
call('MGET', key)
call('SETRANGE', key, '0', '')
call('PEXPIRE', key, '1')
call('ZADD', key, 'XX', '0', '-')
call('ZREM', key, '-')
call('ZCARD', key)
call('ZRANGE', key, '0', '0')
call('ZREVRANGE', key, '0', '0')
call('ZRANGEBYSCORE', key, '0', '0')
call('ZREMRANGEBYSCORE', key, '0', '0')
call('HMGET', key, '-')
call('HDEL', key, '-')
-- Only these two create a key.
call('PSETEX', key, '1', '-')
call('DEL', key)
call('HSET', key, '-', '-')
return call('DEL', key)
