-- The numbers of algorithms. METER is a bucket level: token bucket, leaky bucket and GCRA are the same here.

local METER, QUEUE, FIXED, COUNTER = 1, 2, 3, 4
local LOG, SEGMENTS, HYBRID, SLOTS, ROLLOVER = 5, 6, 7, 8, 9

-- The time of a correction that belongs to no charge: the most recent units are refunded.
local LATEST = -1
