-- Corrects earlier charges to the actual use.
--
-- KEYS  [1 .. records]  records, then long states
--       [records + 1 ..] two for each key with a reservation: its set and its hash of holds
-- ARGV  [1] the call header (see includes/call-header.lua) and the limits (see includes/limits.lua)
--       [2] settlements: `flags B, items H, holder d, span d`, then for each item
--           `limit H, key H, long H, holds H, at d, cost d, mark d, actual d`. Flags: 1 the charge was held, 2 it was a
--           lease for `span` microseconds, 4 it has expired at `span`: refund it as of then, if it is still held,
--           8 only remove the reservation: the charge becomes final.
-- Returns one string: `now d`, then for each settlement `outcome B` (0 settled, 1 late, 2 gone, 3 not done:
--   reservations have expired, 4 not done: `now` is outside the calendar periods) and `corrected d`.

-- @include call-header
-- @include rate-arithmetic
-- @include limits
-- @include key-records
-- @include buckets-and-windows
-- @include corrections
-- @include logs-and-slots
-- @include algorithms
-- @include leases
-- @include reservations

local SETTLED, LATE, GONE, DUE, BEYOND = 0, 1, 2, 3, 4

local limits = read_limits()

-- Removes a reservation under all its keys. Returns true when it was still held under every one.
local function strike_holds(items, holder)
  local name, done, held = pack('<d', holder), {}, true
  for _, item in ipairs(items) do
    if item.holds > 0 and not done[item.key] then
      done[item.key] = true
      if not strike_hold(item.key, item.holds, name, now) then held = false end
    end
  end
  return held
end

local function settle_lease(item, holder, span)
  leased_units(item, now)
  local past = { at = item.at + span, cost = item.cost, mark = 0, holder = holder }
  if strike_lease(item, holder, now) then
    correct(item, now, item.actual, past)
    return item.actual - item.cost, SETTLED
  end
  -- Missing before its expiry: settled already, or deleted by a reset.
  if past.at > now then return 0, GONE end
  return correct(item, now, item.actual - item.cost, past), LATE
end

local function settle(flags, items, holder, span)
  local as_of = now
  if flags >= 4 and flags < 8 then
    as_of = span
  elseif flags < 4 then
    for _, item in ipairs(items) do
      if holds_due(item.key, now) then return DUE, 0 end
      if not reaches(item, now) then return BEYOND, 0 end
    end
  end
  local outcome, corrected = SETTLED, 0
  if flags % 4 >= 2 then
    for _, item in ipairs(items) do
      local units, ended = settle_lease(item, holder, span)
      corrected = corrected + units
      outcome = max(outcome, ended)
    end
    return outcome, corrected
  end
  if flags % 2 == 1 and not strike_holds(items, holder) then outcome = LATE end
  if flags >= 8 or (flags >= 4 and outcome == LATE) then return outcome, 0 end
  for _, item in ipairs(items) do
    local past = { at = item.at, cost = item.cost, mark = item.mark, holder = holder }
    leased_units(item, as_of)
    local units = correct(item, as_of, outcome == LATE and item.actual or item.actual - item.cost, past)
    if units then corrected = corrected + units else outcome = GONE end
  end
  return outcome, corrected
end

local settlements = ARGV[2]
local out = { pack('<d', now) }
local place, size = 1, #settlements
while place <= size do
  local flags, count, holder, span, after = unpack_binary('<BHdd', settlements, place)
  local items = {}
  place = after
  for index = 1, count do
    local item = {}
    item.limit, item.key, item.long, item.holds, item.at, item.cost, item.mark, item.actual, place =
      unpack_binary('<HHHHdddd', settlements, place)
    item.limit = limits[item.limit]
    items[index] = item
  end
  out[#out + 1] = pack('<Bd', settle(flags, items, holder, span))
end

save_records(now, slack)
save_longs(now, slack)
return table.concat(out)
