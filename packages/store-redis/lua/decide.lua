-- Decides questions, each over any set of limits: all of a question's limits are charged, or none.
--
-- KEYS  [1 .. records]  records of subjects, then long states
--       [records + 1 ..] two for each subject that a reservation is to be noted for: its set and its hash of holds
-- ARGV  [1] the opening (see includes/call-header.lua), the limits (see includes/limits.lua), and runs, each
--           `limits H, cost d, subjects H`, the numbers of the limits `H*`, and for each subject `key H, times H`: the limits are
--           asked about that key so many times in a row, and charge. Levels and plain windows only
--       [2] questions, or nothing: `flags B, times H, items H, holder d, span d`, then for each item
--           `limit H, key H, long H, holds H, cost d`. Flags: 1 charge, 2 partial, 4 entitled, 8 hold for `span`
--           microseconds, 16 lease for `span`. `times` asks the same so many times in a row. `long` and `holds` are 0 when
--           there is none.
--       [3 ..] for each item that is held, its limit as it is noted beside the charge
-- Returns one string: `now d`, then for each subject of each run `admitted H, how B`: with 0 nothing was stored, with 1 the
--   record follows as it was, with 2 the values of the limits as they were; with 3 the answer of a question follows,
--   beginning with its `admitted`; with 4 `kept d, at d, level d*` after the charge. Then for each question `admitted H`: how many of its times were allowed. 65535 says that it
--   was not decided, and then `why B`: 1 reservations of a subject have run out, 2 the calendar does not reach.
--   Else `granted d` when partial, and for each item `head B` (1 a state follows, 2 a block, 4 leases, 8 would be allowed),
--   `blocked until d`, `leased units d, soonest end d`, and the state as it was before: the values of a small one;
--   `count H, values d*` of a ring or a log under a burst; of a log or slots, for which the answer is given instead,
--   `remaining d, reset d, retry d` (retry -1: never). Remaining, reset and retry of the others follow from the state, by
--   the same functions that decide in memory.

-- @include rate-arithmetic
-- @include algorithm-kinds
-- @include call-header

local out = { pack('<d', now) }

-- @include single-limit-checks
-- @include limits

-- The limits as tables, made when they are needed first: several levels, which is most of what gets here, do without.
local limits, after_limits

local function need_limits()
  if not limits then limits, after_limits = read_limits() end
end

-- Says how often a subject was admitted, and what was stored of it.
local function tell(raw, times)
  local place = #out
  if raw then
    out[place + 1], out[place + 2] = ADMITTED_KNOWN[times] or pack('<HB', times, 1), raw
  else
    out[place + 1] = ADMITTED_NEW[times] or pack('<HB', times, 0)
  end
end

-- @include bulk-bucket-checks

-- All that is not one limit alone. It is made only when it is needed: making it takes longer than most calls do.
local function general_way()
  -- @include records
  -- @include windows
  -- @include buckets
  -- @include logs-and-slots
  -- @include algorithms
  -- @include leases
  -- @include holds
  -- @include bulk-checks
  -- @include simple-batches

  local ITEM = {}

  local function item_format(count)
    local format = ITEM[count]
    if not format then
      format = '<' .. string.rep('HHHHd', count)
      ITEM[count] = format
    end
    return format
  end

  -- What a log or slots answer to a cost: remaining, reset, retry.
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

  -- The state of an item as it is now, for the reply; '' when there is none.
  local function state_text(item, values, at)
    local limit = item.limit
    local kind = limit.kind
    if kind == SEGMENTS then
      local ring = load_long(item).numbers
      return #ring > 0 and pack('<H', #ring) .. write_numbers(ring) or ''
    end
    local is_long_hybrid = kind == HYBRID and item.long > 0
    if not at and not (is_long_hybrid and raws[item.long]) then return '' end
    local size = entry_size(limit)
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

  -- Looks at one item: what is left beside leases, whether it is blocked. Nil when the calendar does not reach.
  local function look(item, entitled)
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

  -- Lowers every cost to the most that all limits can give, or to one unit when that is nothing.
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

  -- Notes a reservation under every subject it charged.
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
        local keep = keep_for(values[at + 2] - now, slack)
        call('PEXPIRE', KEYS[item.holds], keep)
        call('PEXPIRE', KEYS[item.holds + 1], keep)
      end
    end
  end

  local function answer(flags, times, items, holder, span)
    local entitled = flags % 8 >= 4
    for _, item in ipairs(items) do
      if holds_due(item.key, now) then return 1 end
      if not look(item, entitled) then return 2 end
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

  -- Asks about one subject of a run in the general way.
  local function ask_generally(run, key, times, cost)
    out[#out + 1] = pack('<HB', 0, 3)
    local items = {}
    for index, limit in ipairs(run.limits) do items[index] = { limit = limit, key = key, long = 0, holds = 0, cost = cost } end
    local why = answer(5, times, items, 0, 0)
    if why then out[#out + 1] = pack('<HB', 65535, why) end
  end

  -- The flags of a usual check: 1 charge and 4 entitled, nothing else.
  local CHARGED = 5

  local function ask_questions()
    local questions, next_held = ARGV[2], 3
    local at, size = 1, #questions
    while at <= size do
      local flags, times, count, holder, span, after = unpack_binary('<BHHdd', questions, at)
      local fields = { unpack_binary(item_format(count), questions, after) }
      at = fields[5 * count + 1]
      if flags ~= CHARGED or not ask_plainly(fields, count, times) then
        local items = {}
        for index = 1, count do
          local field = 5 * index
          local item = {
            limit = limits[fields[field - 4]], key = fields[field - 3], long = fields[field - 2], holds = fields[field - 1],
            cost = fields[field],
          }
          if item.holds > 0 then
            item.noted = ARGV[next_held]
            next_held = next_held + 1
          end
          items[index] = item
        end
        local why = answer(flags, times, items, holder, span)
        if why then out[#out + 1] = pack('<HB', 65535, why) end
      end
    end
  end

  local function ask_subject(run, key, times, cost)
    -- What a question has changed in this call is not yet stored, so it must go on that way.
    if values_of[key] or not ask_run(run, key, times, cost, now, slack) then ask_generally(run, key, times, cost) end
  end

  local function save()
    save_records(now, slack)
    save_longs(now, slack)
  end

  return { run_of = run_of, ask_subject = ask_subject, ask_questions = ask_questions, save = save }
end

local general

-- What asks in the general way about subjects of a run over so many limits, by their numbers.
local function asking_generally(numbers, count, levels, cost)
  local run
  return function(key, times)
    need_limits()
    general = general or general_way()
    if not run then
      local mine = {}
      for index = 1, count do mine[index] = limits[numbers[index]] end
      run = general.run_of(mine, levels)
    end
    general.ask_subject(run, key, times, cost)
  end
end

-- Asks about the subjects that were skipped, and puts their answers in their places.
local function ask_skipped()
  local all, numbers = out, { skipped.limit }
  local ask = asking_generally(numbers, 1, levels_of(numbers, 1), skipped.cost)
  for index = 1, #skipped, 3 do
    out = {}
    ask(skipped[index], skipped[index + 1])
    all[skipped[index + 2]] = table.concat(out)
  end
  out = all
end

local function ask_runs(runs, at)
  local size = #runs
  while at <= size do
    local limit_count, cost, count, after = unpack_binary('<HdH', runs, at)
    local first, last = limit_count + 1, limit_count + 2 * count
    local fields = { unpack_binary('<' .. string.rep('H', last), runs, after) }
    at = fields[last + 1]
    local levels = levels_of(fields, limit_count)
    local elsewhere = asking_generally(fields, limit_count, levels, cost)
    -- What the general way has changed in this call is not yet stored, so after it all go that way.
    if levels and not general then
      ask_together(levels, fields, first, last, cost * UNIT, elsewhere, at <= size or ARGV[2])
    else
      for field = first, last, 2 do elsewhere(fields[field], fields[field + 1]) end
    end
  end
end

if not runs_at then need_limits() end
if skipped then ask_skipped() end
ask_runs(ARGV[1], runs_at or after_limits)
if ARGV[2] then
  need_limits()
  general = general or general_way()
  general.ask_questions()
end
if general then general.save() end
return table.concat(out)
