-- Lists names of keys of one node, a part at a time. A script, so that every client sends it to the node that has KEYS[1].
--
-- KEYS  [1] any name whose slot is on the node
-- ARGV  [1] the cursor, '0' to begin; [2] the pattern of the names
-- Returns the next cursor, '0' at the end, and names.

return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', '1000')
