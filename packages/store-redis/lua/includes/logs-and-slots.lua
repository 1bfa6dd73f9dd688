-- States whose length grows with use, each under a separate key.

-- The exact log: `before d`, then `at d, total d` for each timestamp. `total` counts all units up to and including that
-- time, so the window is found by bisection and its units by one subtraction.

local function log_entry(log, index)
  return unpack_binary('<dd', log, 16 * index - 7)
end

-- A view of the log: entries, the first in the window, the total before it, the newest time and total, and `now`, not
-- before it.
local function log_view(log, limit, now)
  local count = log and (#log - 8) / 16 or 0
  if count == 0 then return { count = 0, first = 1, before = 0, newest = now, total = 0, now = now } end
  local newest, total = log_entry(log, count)
  now = max(now, newest)
  local low, high = 1, count + 1
  while low < high do
    local middle = floor((low + high) / 2)
    if log_entry(log, middle) + limit.window <= now then low = middle + 1 else high = middle end
  end
  local before
  if low == 1 then
    before = unpack_binary('<d', log)
  else
    local _, sum = log_entry(log, low - 1)
    before = sum
  end
  return { count = count, first = low, before = before, newest = newest, total = total, now = now }
end

local function log_left(view, limit)
  return limit.limit - (view.total - view.before)
end

-- The entries in the window as one string, at most `most` of them: the newest stands for the rest.
local function log_in_view(log, view, most)
  local entries = view.count - view.first + 1
  if entries <= 0 then return '' end
  if entries <= most then return string.sub(log, 16 * view.first - 7) end
  return string.sub(log, 16 * view.first - 7, 16 * (view.first + most - 1) - 8) .. pack('<dd', view.newest, view.total)
end

-- The log with `units` more at `view.now`.
local function log_add(log, view, limit, units)
  local entries = log_in_view(log, view, limit.limit)
  local total = view.total + units
  local is_full = #entries >= 16 * limit.limit
  if #entries > 0 and (view.newest == view.now or is_full) then entries = string.sub(entries, 1, -17) end
  return pack('<d', view.before) .. entries .. pack('<dd', view.now, total)
end

-- When `excess` of the oldest units have left the window.
local function log_leaves_at(log, view, limit, excess)
  local low, high = view.first, view.count
  while low < high do
    local middle = floor((low + high) / 2)
    local _, total = log_entry(log, middle)
    if total - view.before >= excess then high = middle else low = middle + 1 end
  end
  return log_entry(log, low) + limit.window
end

-- Removes up to `most` of the newest units. Returns the log and the number removed.
local function log_remove_newest(log, view, limit, most)
  local entries = log_in_view(log, view, limit.limit)
  local removed = min(most, view.total - view.before)
  local total = view.total - removed
  local kept, previous = {}, view.before
  for place = 1, #entries, 16 do
    local instant, sum = unpack_binary('<dd', entries, place)
    if previous < total then kept[#kept + 1] = pack('<dd', instant, min(sum, total)) end
    previous = sum
  end
  return pack('<d', view.before) .. table.concat(kept), removed
end

-- Removes up to `most` units of the time `at`. Returns the log and the number removed.
local function log_remove(log, view, limit, at, most)
  local entries = log_in_view(log, view, limit.limit)
  local kept, removed = {}, 0
  local previous = view.before
  for place = 1, #entries, 16 do
    local instant, total = unpack_binary('<dd', entries, place)
    local units = total - previous
    previous = total
    if instant == at and removed == 0 then
      removed = min(most, units)
      units = units - removed
    end
    if units > 0 then kept[#kept + 1] = pack('<dd', instant, total - removed) end
  end
  return pack('<d', view.before) .. table.concat(kept), removed
end

-- Lists of numbers to and from a string, in chunks that fit on the Lua stack.
local PIECE = 2000

local function read_numbers(text)
  local numbers, count = {}, #text / 8
  for first = 1, count, PIECE do
    local size = min(PIECE, count - first + 1)
    local piece = { unpack_binary('<' .. string.rep('d', size), text, 8 * first - 7) }
    for index = 1, size do numbers[first + index - 1] = piece[index] end
  end
  return numbers
end

local function write_numbers(numbers)
  local pieces, count = {}, #numbers
  for first = 1, count, PIECE do
    local size = min(PIECE, count - first + 1)
    pieces[#pieces + 1] = pack('<' .. string.rep('d', size), unpack(numbers, first, first + size - 1))
  end
  return table.concat(pieces)
end

-- Counts per sub-window: [newest, count 0 ... count n].

local function ring_of(limit)
  return limit.extra + 1, ceil(limit.window / limit.extra)
end

local function ring_count(ring, size, length, index)
  if #ring ~= size + 1 then return 0 end
  local newest = floor(ring[1] / length)
  if index > newest or index <= newest - size then return 0 end
  return ring[2 + index % size]
end

local function ring_newest(ring, length, now)
  return floor((ring[1] and max(now, ring[1]) or now) / length)
end

local function ring_left(ring, limit, now)
  local size, length = ring_of(limit)
  local newest, used = ring_newest(ring, length, now), 0
  for index = newest - size + 1, newest do used = used + ring_count(ring, size, length, index) end
  return limit.limit - used
end

-- The ring advanced to `now`, and the position of its newest count.
local function ring_turn(ring, limit, now)
  local size, length = ring_of(limit)
  local newest, turned = ring_newest(ring, length, now), {}
  turned[1] = newest * length
  for index = newest - size + 1, newest do turned[2 + index % size] = ring_count(ring, size, length, index) end
  return turned, 2 + newest % size, (newest + size) * length
end

local function ring_correct(ring, limit, now, units, charge)
  local size, length = ring_of(limit)
  local turned, place, fresh = ring_turn(ring, limit, now)
  local newest = floor(turned[1] / length)
  local applied = units
  if units < 0 and charge.at == LATEST then
    local removed = 0
    for index = newest, newest - size + 1, -1 do
      local taken = min(-units - removed, turned[2 + index % size])
      turned[2 + index % size] = turned[2 + index % size] - taken
      removed = removed + taken
    end
    return -removed, turned, fresh
  end
  if units < 0 then
    local index = floor(charge.at / length)
    applied = 0
    if index <= newest and index > newest - size then
      place = 2 + index % size
      applied = -min(-units, charge.cost, turned[place])
    end
  end
  if applied ~= 0 then turned[place] = turned[place] + applied end
  return applied, turned, fresh
end

-- Slots under a lease: [holder, slots, ends at, ...], soonest to end first.

local function slots_held(leases, now)
  local held = 0
  for lease = 1, #leases, 3 do
    if leases[lease + 2] > now then held = held + leases[lease + 1] end
  end
  return held
end

-- The leases that live at `now`, without those of `holder`.
local function live_slots(leases, now, holder)
  local live = {}
  for lease = 1, #leases, 3 do
    if leases[lease + 2] > now and leases[lease] ~= holder then
      for part = 0, 2 do live[#live + 1] = leases[lease + part] end
    end
  end
  return live
end

local function insert_slots(leases, holder, slots, ends)
  local place = #leases
  while place > 0 and leases[place] > ends do place = place - 3 end
  table.insert(leases, place + 1, ends)
  table.insert(leases, place + 1, slots)
  table.insert(leases, place + 1, holder)
end

local function slots_free_at(leases, now, excess)
  local freed = 0
  for lease = 1, #leases, 3 do
    if leases[lease + 2] > now then
      freed = freed + leases[lease + 1]
      if freed >= excess then return leases[lease + 2] end
    end
  end
  return -1
end

-- Returns the slots corrected (nil when the lease is gone) and the leases.
local function slots_correct(leases, limit, now, units, charge)
  local slots = 0
  for lease = 1, #leases, 3 do
    if leases[lease] == charge.holder and leases[lease + 2] > now then slots = leases[lease + 1] end
  end
  local live = live_slots(leases, now, charge.holder)
  local kept = slots == 0 and 0 or max(0, slots + units)
  if kept > 0 then insert_slots(live, charge.holder, kept, now + limit.window) end
  if slots == 0 then return nil, live end
  return kept - slots, live
end
