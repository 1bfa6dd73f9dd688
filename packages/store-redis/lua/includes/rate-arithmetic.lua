-- Constant rates as exact fractions: a bucket leaks `units / micros` micro-units per microsecond. A separate file,
-- because includes/bulk-bucket-checks.lua needs nothing else.

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

-- The micro-units that leak in `elapsed` microseconds, rounded down. Exact while the product of time and units is a
-- safe integer; beyond that, while the product of the remainder is.
local function flowed(units, micros, elapsed)
  local product = elapsed * units
  if product <= SAFE then return floor(product / micros) end
  local whole = floor(elapsed / micros)
  return whole * units + floor((elapsed - whole * micros) * units / micros)
end

-- The microseconds until `level` micro-units have leaked, or a little more: for expiry only.
local function time_to_flow(units, micros, level)
  return level > 0 and ceil(level / units * micros) + 1 or 0
end
