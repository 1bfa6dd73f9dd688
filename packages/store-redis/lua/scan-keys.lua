-- Scans the keys of one node. A script, so that every client sends it to the node that has KEYS[1].
--
-- KEYS  [1] any key whose slot is on the node
-- ARGV  [1] the cursor, '0' to start; [2] the pattern of the keys
-- Returns the next cursor, '0' at the end, and keys.

return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', '1000')
