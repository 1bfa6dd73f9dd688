-- Constant rates as exact fractions: a bucket leaks `units / micros` micro-units per microsecond.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local call = redis.call
local pack, unpack_binary = struct.pack, struct.unpack

local SAFE = 9007199254740991
local UNIT = 1000000

-- floor(elapsed * units / micros), exact while the product (or that of the remainder) is a safe integer.
local function flowed(units, micros, elapsed)
  local product = elapsed * units
  if product <= SAFE then return floor(product / micros) end
  local whole = floor(elapsed / micros)
  return whole * units + floor((elapsed - whole * micros) * units / micros)
end

-- The microseconds until `level` has leaked, or a little more: for expiry only.
local function time_to_flow(units, micros, level)
  return level > 0 and ceil(level / units * micros) + 1 or 0
end
