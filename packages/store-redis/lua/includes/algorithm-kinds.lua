-- How algorithms are numbered. A meter is a level: token bucket, leaky bucket and GCRA are one.

local METER, QUEUE, FIXED, COUNTER = 1, 2, 3, 4
local LOG, SEGMENTS, HYBRID, SLOTS, ROLLOVER = 5, 6, 7, 8, 9

-- The instant of a correction that belongs to no charge: units are given back of what was used last.
local LATEST = -1
