-- Batches of any limits, with blocks, leases and reservations. Each item is a table: its limit, the indexes of its
-- keys, and its cost in units.
--
-- Invariant: all items are read before any is charged, and nothing is charged unless all fit. So a denied batch changes
-- nothing but leases that have ended.

-- The decision of a log or slots on a cost: remaining, reset, retry.
local function list_answer(item, cost, left, allowed)
  local limit, state = item.limit, load_long(item)
  local possible = cost <= limit.capacity and limit.capacity > 0
  if limit.kind == LOG then
    local view = log_view(state.log, limit, now)
    if allowed then
      local newest = cost > 0 and view.now or view.newest
      local is_empty = cost == 0 and view.first > view.count
      return left - cost, is_empty and view.now or max(view.now, newest + limit.window), now
    end
    local reset = view.count > 0 and max(view.now, view.newest + limit.window) or view.now
    return max(0, left), reset, possible and log_leaves_at(state.log, view, limit, cost - left) or -1
  end
  local leases = state.numbers
  if allowed then
    local live = live_slots(leases, now, -1)
    local last = max(now, live[#live] or now, cost > 0 and now + limit.window or now)
    return left - cost, last, now
  end
  return max(0, left), max(now, leases[#leases] or now), possible and slots_free_at(leases, now, cost - left) or -1
end

-- The current state of an item, for the reply; '' when there is none.
local function state_text(item, values, at)
  local limit = item.limit
  local kind = limit.kind
  if kind == SEGMENTS then
    local ring = load_long(item).numbers
    return #ring > 0 and pack('<H', #ring) .. write_numbers(ring) or ''
  end
  local is_long_hybrid = kind == HYBRID and item.long > 0
  if not at and not (is_long_hybrid and raws[item.long]) then return '' end
  local size = limit.size
  local text
  if not at then
    text = pack('<dd', 0, 0)
  elseif size == 2 then
    text = pack('<dd', values[at + 1], values[at + 2])
  elseif size == 3 then
    text = pack('<ddd', values[at + 1], values[at + 2], values[at + 3])
  else
    text = pack('<' .. string.rep('d', size), unpack(values, at + 1, at + size))
  end
  if not is_long_hybrid then return text end
  local state = load_long(item)
  if limit.base == SEGMENTS then return text .. pack('<H', #state.numbers) .. write_numbers(state.numbers) end
  local base = base_of(limit)
  local view = log_view(state.log, base, now)
  local entries, numbers, before = log_in_view(state.log, view, limit.limit), {}, view.before
  for place = 1, #entries, 16 do
    local instant, total = unpack_binary('<dd', entries, place)
    numbers[#numbers + 1], numbers[#numbers + 2] = instant, total - before
    before = total
  end
  return text .. pack('<H', #numbers) .. write_numbers(numbers)
end

-- Reads one item: the units left beside leases, and whether it is blocked. Nil when `now` is outside the calendar
-- periods.
local function inspect(item, entitled)
  item.leased, item.soonest = leased_units(item, now)
  local values, at = place_of(item)
  local left = units_left(item, values, at, now, entitled)
  if not left then return nil end
  item.left = left - item.leased
  item.values, item.at = values, at
  local blocked = layout_at[item.key].at[item.limit.block]
  item.blocked = blocked and values[blocked + 1] > now and values[blocked + 1] or 0
  return true
end

-- How many times in a row the cost fits.
local function times_fitting(item, times)
  if item.limit.capacity <= 0 then return 0 end
  if item.cost == 0 then return item.left >= 0 and times or 0 end
  if item.left < item.cost then return 0 end
  return times == 1 and 1 or min(times, floor(item.left / item.cost))
end

-- Lowers every cost to the maximum that all limits have left, at least one unit.
local function lower_costs(items)
  local granted = math.huge
  for _, item in ipairs(items) do
    granted = min(granted, times_fitting(item, 1) > 0 and item.cost or max(0, item.left))
  end
  granted = max(1, granted)
  for _, item in ipairs(items) do item.cost = min(item.cost, granted) end
  return granted
end

local function times_admitted(items, times)
  for _, item in ipairs(items) do
    times = item.blocked > 0 and 0 or min(times, times_fitting(item, times))
  end
  return times
end

local function write_item(item)
  local values, at = item.values, item.at
  local kind = item.limit.kind
  local head, text = 0, ''
  if kind == LOG or kind == SLOTS then
    local allowed = times_fitting(item, 1) > 0
    if allowed then head = 8 end
    text = pack('<ddd', list_answer(item, item.cost, item.left, allowed))
  else
    text = state_text(item, values, at)
    if #text > 0 then head = 1 end
  end
  if item.leased > 0 then
    head = head + 4
    text = pack('<dd', item.leased, item.soonest) .. text
  end
  if item.blocked > 0 then
    head = head + 2
    text = pack('<d', item.blocked) .. text
  end
  out[#out + 1] = string.char(head) .. text
end

-- Stores a reservation under every key it charged.
local function hold(items, holder, ends)
  local notes = {}
  for _, item in ipairs(items) do
    local note = notes[item.key] or pack('<dd', now, ends)
    notes[item.key] = note .. pack('<ddH', item.cost, item.mark or 0, #item.noted) .. item.noted
  end
  local name = pack('<d', holder)
  for _, item in ipairs(items) do
    local note = notes[item.key]
    if note then
      notes[item.key] = nil
      call('ZADD', KEYS[item.holds], string.format('%.0f', ends), name)
      call('HSET', KEYS[item.holds + 1], name, note)
      note_holds(item.key, item.holds, now)
      local values, at = entry_for(item.key, HOLDS, 2, now)
      local keep = keep_ms(values[at + 2] - now, slack)
      call('PEXPIRE', KEYS[item.holds], keep)
      call('PEXPIRE', KEYS[item.holds + 1], keep)
    end
  end
end

-- Decides a batch, and appends the reply to `out`. Returns a reason when it cannot be decided, without effect: 1
-- reservations have expired, 2 `now` is outside the calendar periods of a limit.
local function decide_items(flags, times, items, holder, span)
  local entitled = flags % 8 >= 4
  for _, item in ipairs(items) do
    if holds_due(item.key, now) then return 1 end
    if not inspect(item, entitled) then return 2 end
  end
  local admitted = times_admitted(items, times)
  local granted
  if flags % 4 >= 2 then
    granted = math.huge
    if admitted == 0 then
      granted = lower_costs(items)
      admitted = times_admitted(items, 1)
    end
  end
  out[#out + 1] = pack('<H', admitted)
  if granted then out[#out + 1] = pack('<d', granted) end
  for _, item in ipairs(items) do write_item(item) end
  if admitted == 0 or flags % 2 == 0 then return end
  for _, item in ipairs(items) do
    if item.cost > 0 then
      if flags >= 16 then
        add_lease(item, holder, item.cost, now + span, now)
      else
        item.mark = charge(item, now, admitted * item.cost, holder)
      end
    end
  end
  if flags % 16 >= 8 then hold(items, holder, now + span) end
end

-- The index in ARGV of the next limit to store with a reservation.
local next_held_limit = 3

-- Like `decide_simple_batch`, for any batch: `flags`, `holder` and `span` are described in decide.lua.
local function decide_batch(flags, times, fields, count, holder, span)
  local items = {}
  for index = 1, count do
    local field = 5 * index
    local item = {
      limit = limits[fields[field - 4]], key = fields[field - 3], long = fields[field - 2], holds = fields[field - 1],
      cost = fields[field],
    }
    if item.holds > 0 then
      item.noted = ARGV[next_held_limit]
      next_held_limit = next_held_limit + 1
    end
    items[index] = item
  end
  local why = decide_items(flags, times, items, holder, span)
  if why then out[#out + 1] = pack('<HB', 65535, why) end
end
