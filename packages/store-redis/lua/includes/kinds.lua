-- How algorithms are numbered. A meter is a level: token bucket, leaky bucket and GCRA are one.

local METER, QUEUE, FIXED, COUNTER = 1, 2, 3, 4
local LOG, SEGMENTS, HYBRID, SLOTS = 5, 6, 7, 8
