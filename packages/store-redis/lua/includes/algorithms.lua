-- What a decision needs of every algorithm: the units left, and the state after a charge or a correction. `item` has a
-- limit, the index of the record, and, for long states, the index of their key.

local longs, long_changed = {}, {}

-- A long state: the text of a log, or a list of numbers.
local function load_long(item)
  local state = longs[item.long]
  if state then return state end
  local raw = raws[item.long]
  local kind = item.limit.kind == HYBRID and item.limit.base or item.limit.kind
  if kind == LOG then
    state = { log = raw or nil }
  else
    state = { numbers = raw and read_numbers(raw) or {} }
  end
  longs[item.long] = state
  return state
end

local function change_long(item, fresh)
  local state = longs[item.long]
  state.fresh = fresh
  long_changed[item.long] = true
end

local function save_longs(now, slack)
  for key in pairs(long_changed) do
    local state = longs[key]
    if state.fresh <= now then
      call('DEL', KEYS[key])
    else
      call('PSETEX', KEYS[key], keep_ms(state.fresh - now, slack), state.log or write_numbers(state.numbers))
    end
  end
end

-- The base of a hybrid, as a limit.
local function base_of(limit)
  return { kind = limit.base, capacity = limit.base_capacity, limit = limit.limit, window = limit.window,
    extra = limit.extra, edges = limit.edges }
end

-- The position of an item's entry; nil when there is none of the right size.
local function place_of(item)
  local values, layout = load_record(item.key)
  local place = layout.at[item.limit.tag]
  if place and layout.sizes[item.limit.tag] ~= item.limit.size then place = nil end
  return values, place
end

-- Units left in a window; nil outside its calendar periods. `at` is the position of its small state.
local function window_left(item, limit, values, at, now)
  if limit.kind == FIXED then return fixed_left(values, at, limit, now) end
  if limit.kind == COUNTER then return counter_left(limit, now, counts_at(values, at, limit, now)) end
  if limit.kind == LOG then return log_left(log_view(load_long(item).log, limit, now), limit) end
  return ring_left(load_long(item).numbers, limit, now)
end

-- Whether the calendar periods of a limit include `now` and the stored time, and what is carried over is known.
local function reaches(item, now)
  local limit = item.limit
  if not limit.edges then return true end
  local values, at = place_of(item)
  if at and limit.kind == HYBRID then at = at + 2 end
  return fixed_at(values, at, limit, now) ~= nil
end

-- The parts of a hybrid: units left in the window, and in the burst.
local function hybrid_parts(item, values, at, now)
  local limit = item.limit
  local base = base_of(limit)
  local base_left = window_left(item, base, values, at and at + 2, now)
  if not base_left then return nil end
  local burst_at = at and values[at + 2] > 0 and at or nil
  local burst_left = meter_left(values, burst_at, limit, limit.burst, now)
  local from_base = limit.base_capacity > 0 and max(0, base_left) or 0
  return from_base, limit.burst > 0 and max(0, burst_left) or 0, base, base_left, burst_at, burst_left
end

-- Units left, below 0 when overdrawn; nil outside the calendar periods of the limit.
local function units_left(item, values, at, now, entitled)
  local limit = item.limit
  local kind = limit.kind
  if kind == METER or kind == QUEUE then return meter_left(values, at, limit, limit.limit, now) end
  if kind == ROLLOVER then return rollover_left(values, at, limit, now) end
  if kind == SLOTS then return limit.limit - slots_held(load_long(item).numbers, now) end
  if kind ~= HYBRID then return window_left(item, limit, values, at, now) end
  local from_base, from_burst = hybrid_parts(item, values, at, now)
  return from_base and from_base + (entitled and from_burst or 0)
end

local function charge_window(item, limit, values, at, now, units, to)
  if limit.kind == FIXED then return fixed_write(values, at, limit, now, units, to) end
  if limit.kind == COUNTER then return counter_write(values, at, limit, now, units, to) end
  local state = load_long(item)
  local fresh
  if limit.kind == LOG then
    local view = log_view(state.log, limit, now)
    if units == 0 then return view.count > 0 and view.newest + limit.window or 0 end
    state.log = log_add(state.log, view, limit, units)
    fresh = view.now + limit.window
  else
    local place
    state.numbers, place, fresh = ring_turn(state.numbers, limit, now)
    state.numbers[place] = state.numbers[place] + units
  end
  change_long(item, fresh)
  return fresh
end

-- Charges a hybrid: the window as far as possible, then the burst. Returns the units charged to the window.
local function charge_hybrid(item, now, units)
  local limit = item.limit
  local values, at = place_of(item)
  local from_base, _, base, base_left, burst_at, burst_left = hybrid_parts(item, values, at, now)
  local by_base = min(from_base, units)
  local by_burst = units - by_base
  local is_new = not at
  values, at = entry_for(item.key, limit.tag, limit.size, now)
  if is_new then
    for index = 1, limit.size do values[at + index] = 0 end
  end
  local burst_fresh, base_fresh = 0, 0
  -- A part that is overdrawn or empty, and not charged, stays unchanged.
  if by_burst > 0 or (limit.burst > 0 and burst_left >= 0) then
    burst_fresh = meter_write(values, burst_at and at, limit, now, by_burst, at)
  elseif burst_at then
    burst_fresh = values[at + 2] + time_to_flow(limit.units, limit.micros, values[at + 1])
  end
  if limit.base_capacity > 0 and base_left >= by_base then
    base_fresh = charge_window(item, base, values, (not is_new) and at + 2 or nil, now, by_base, at + 2)
  elseif not is_new then
    base_fresh = values[at]
  end
  values[at] = max(burst_fresh, base_fresh)
  changed[item.key] = true
  return by_base
end

-- A state must not be dropped before its leases: a lease that has ended is charged to it at the next check, as of its
-- end.
local function keep_beside_leases(item)
  local values, layout = values_of[item.key], layout_at[item.key]
  local state, leases = layout.at[item.limit.tag], layout.at[item.limit.lease]
  if state and leases and values[leases] > values[state] then values[state] = values[leases] end
end

-- Charges `units` that fit. Returns the mark of the charge, which is needed to refund it.
local function charge(item, now, units, holder)
  local limit = item.limit
  local kind = limit.kind
  if kind == HYBRID then return charge_hybrid(item, now, units) end
  if kind == SLOTS then
    local state = load_long(item)
    state.numbers = live_slots(state.numbers, now, -1)
    insert_slots(state.numbers, holder, units, now + limit.window)
    change_long(item, state.numbers[#state.numbers])
    return 0
  end
  if item.long > 0 then
    charge_window(item, limit, nil, nil, now, units, nil)
    return 0
  end
  local _, at = place_of(item)
  local values, to = entry_for(item.key, limit.tag, limit.size, now)
  local from = at and to or nil
  changed[item.key] = true
  if kind == METER or kind == QUEUE then
    local fresh, level = meter_write(values, from, limit, now, units, to)
    values[to] = fresh
    if kind == METER then is_bucket[limit.tag] = true end
    keep_beside_leases(item)
    return kind == QUEUE and level or 0
  end
  if kind == ROLLOVER then
    local net, since = rollover_net(values, from, limit, now)
    values[to] = rollover_write(limit, since, net + units * UNIT, values, to)
    return 0
  end
  values[to] = charge_window(item, limit, values, from, now, units, to)
  keep_beside_leases(item)
  return 0
end

local function correct_long(item, limit, now, units, past)
  local state = load_long(item)
  local applied, fresh
  local was_empty
  if limit.kind == LOG then
    local view = log_view(state.log, limit, now)
    was_empty = view.count == 0
    applied = units
    if units > 0 then
      state.log = log_add(state.log, view, limit, units)
    elseif not was_empty then
      local removed
      local most = min(-units, past.cost)
      if past.at == LATEST then
        state.log, removed = log_remove_newest(state.log, view, limit, most)
      else
        state.log, removed = log_remove(state.log, view, limit, past.at, most)
      end
      applied = -removed
    else
      applied = 0
    end
    fresh = #(state.log or '') > 8 and log_view(state.log, limit, now).newest + limit.window or 0
  elseif limit.kind == SLOTS then
    was_empty = #state.numbers == 0
    applied, state.numbers = slots_correct(state.numbers, limit, now, units, past)
    fresh = state.numbers[#state.numbers] or 0
  else
    was_empty = #state.numbers == 0
    local turned
    applied, turned, fresh = ring_correct(state.numbers, limit, now, units, past)
    if not was_empty or units > 0 then state.numbers = turned end
  end
  if not was_empty or units > 0 then change_long(item, fresh) end
  return applied
end

-- Corrects the window of a hybrid, in values[at + 1 ...] or under a separate key.
local function correct_base(item, base, values, at, now, units, past)
  if base.kind == LOG or base.kind == SEGMENTS then
    local applied = correct_long(item, base, now, units, past) or 0
    return applied, load_long(item).fresh or now + 2 * base.window
  end
  if base.kind == COUNTER then return counter_correct(values, at, base, now, units, past, at) end
  local applied = fixed_applied(values, at, base, now, units, past)
  if not fixed_at(values, at, base, now) then return 0, values[at - 2] end
  return applied, fixed_write(values, at, base, now, applied, at)
end

local function correct_hybrid(item, now, units, past)
  local limit = item.limit
  local values, at = place_of(item)
  if not at and units <= 0 then return 0 end
  local is_new = not at
  values, at = entry_for(item.key, limit.tag, limit.size, now)
  if is_new then
    for index = 1, limit.size do values[at + index] = 0 end
  end
  -- The burst is more valuable to the caller, so it is refunded first. Without a charge, the window is.
  local is_latest = past.at == LATEST
  local from_burst = is_latest and 0 or max(0, past.cost - past.mark)
  local to_burst = units < 0 and -min(-units, from_burst) or 0
  local base_charge = { at = past.at, cost = past.cost - from_burst, mark = 0, holder = past.holder }
  local by_base, base_fresh = correct_base(item, base_of(limit), values, at + 2, now, units - to_burst, base_charge)
  if is_latest then to_burst = units - by_base end
  local burst_charge = { at = past.at, cost = is_latest and past.cost or from_burst, mark = 0, holder = past.holder }
  local burst_at = values[at + 2] > 0 and at or nil
  local by_burst, burst_fresh = meter_correct(values, burst_at, limit, now, to_burst, burst_charge, at)
  values[at] = max(burst_fresh, base_fresh)
  changed[item.key] = true
  return by_burst + by_base
end

-- Corrects an earlier charge `past` ({at, cost, mark, holder}) by `units`, as of `now`. Returns the units corrected;
-- nil when a lease on slots is gone.
local function correct(item, now, units, past)
  local limit = item.limit
  local kind = limit.kind
  if kind == HYBRID then return correct_hybrid(item, now, units, past) end
  if item.long > 0 then return correct_long(item, limit, now, units, past) end
  local _, at = place_of(item)
  if not at and units <= 0 then return 0 end
  local values, to = entry_for(item.key, limit.tag, limit.size, now)
  local from = at and to or nil
  changed[item.key] = true
  local applied
  if kind == METER then
    applied, values[to] = meter_correct(values, from, limit, now, units, past, to)
    is_bucket[limit.tag] = true
  elseif kind == QUEUE then
    applied, values[to] = queue_correct(values, from, limit, now, units, past, to)
  elseif kind == ROLLOVER then
    applied, values[to] = rollover_correct(values, from, limit, now, units, past, to)
  elseif kind == COUNTER then
    applied, values[to] = counter_correct(values, from, limit, now, units, past, to)
  else
    applied = fixed_applied(values, from, limit, now, units, past)
    if fixed_at(values, from, limit, now) then values[to] = fixed_write(values, from, limit, now, applied, to) end
  end
  keep_beside_leases(item)
  return applied
end
