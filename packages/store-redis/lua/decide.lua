-- Decides batches, each over any set of limits: either all limits of a batch are charged, or none.
--
-- Fast paths come first, because creating the functions of the general path takes longer than most calls:
--   1. includes/single-limit-checks.lua  keys with one limit each, a bucket or a simple window
--   2. includes/bulk-bucket-checks.lua   keys with several buckets
--   3. includes/bulk-checks.lua          keys with several buckets and simple windows
--   4. includes/simple-batches.lua       batches of buckets and simple windows over several keys
--   5. the general path below            everything else
--
-- KEYS  [1 .. records]  records, then long states
--       [records + 1 ..] two for each key with a reservation: its set and its hash of holds
-- ARGV  [1] the call header (see includes/call-header.lua), the limits (see includes/limits.lua), and bulk checks, each
--           `limits H, cost d, keys H`, the indexes of the limits `H*`, and for each key `key H, times H`: the key is checked
--           against the limits, and charged, so many times in a row. Buckets and simple windows only.
--       [2] general batches, optional: `flags B, times H, items H, holder d, span d`, then for each item
--           `limit H, key H, long H, holds H, cost d`. Flags: 1 charge, 2 partial, 4 entitled, 8 hold for `span`
--           microseconds, 16 lease for `span`. `times`: how many equal batches there are. `long` and `holds` are 0 when
--           there is none.
--       [3 ..] for each item that is held, its limit, to be stored with the reservation
-- Returns one string: `now d`, then for each key of each bulk check `admitted H, form B`: with 0 there was no record, with 1
--   the previous record follows, with 2 the previous values of the limits, with 3 the reply to a general batch, starting with
--   its `admitted`, with 4 `kept d, at d, level d*` after the charge. Then for each batch `admitted H`: how many of its times
--   were allowed. 65535 means not decided, and `reason B` follows: 1 reservations have expired, 2 `now` is outside the
--   calendar periods of the limit.
--   Otherwise `granted d` when partial, and for each item `flags B` (1 a state follows, 2 a block, 4 leases, 8 would be
--   allowed), `blocked until d`, `leased units d, soonest end d`, and the previous state: the values of a small one;
--   `count H, values d*` of a ring, or of a log under a burst; for a log or slots the decision instead of the state:
--   `remaining d, reset d, retry d` (retry -1: never). The caller computes the decisions of the others from the state, with
--   the functions that decide in memory.

-- @include rate-arithmetic
-- @include algorithm-kinds
-- @include call-header

local out = { pack('<d', now) }

-- @include single-limit-checks
-- @include limits

-- The limits as tables, created on first use: bulk bucket checks, which are most of what gets here, do without.
local limits, after_limits

local function need_limits()
  if not limits then limits, after_limits = read_limits() end
end

-- Writes the reply to a key of a bulk check: how often it was admitted, and its previous record.
local function write_reply(raw, times)
  local place = #out
  if raw then
    out[place + 1], out[place + 2] = ADMITTED_KNOWN[times] or pack('<HB', times, 1), raw
  else
    out[place + 1] = ADMITTED_NEW[times] or pack('<HB', times, 0)
  end
end

-- @include bulk-bucket-checks

-- The general path. Created on first use: creating it takes longer than most calls.
local function general_decider()
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

  local function items_format(count)
    local format = ITEM[count]
    if not format then
      format = '<' .. string.rep('HHHHd', count)
      ITEM[count] = format
    end
    return format
  end

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
        local keep = keep_for(values[at + 2] - now, slack)
        call('PEXPIRE', KEYS[item.holds], keep)
        call('PEXPIRE', KEYS[item.holds + 1], keep)
      end
    end
  end

  local function decide_batch(flags, times, items, holder, span)
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

  -- Decides one key of a bulk check on the general path.
  local function decide_in_general(check, key, times, cost)
    out[#out + 1] = pack('<HB', 0, 3)
    local items = {}
    for index, limit in ipairs(check.limits) do items[index] = { limit = limit, key = key, long = 0, holds = 0, cost = cost } end
    local why = decide_batch(5, times, items, 0, 0)
    if why then out[#out + 1] = pack('<HB', 65535, why) end
  end

  -- The flags of a simple batch: 1 charge and 4 entitled.
  local CHARGED = 5

  local function decide_batches()
    local batches, next_held_limit = ARGV[2], 3
    local at, size = 1, #batches
    while at <= size do
      local flags, times, count, holder, span, after = unpack_binary('<BHHdd', batches, at)
      local fields = { unpack_binary(items_format(count), batches, after) }
      at = fields[5 * count + 1]
      if flags ~= CHARGED or not decide_simple_batch(fields, count, times) then
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
        local why = decide_batch(flags, times, items, holder, span)
        if why then out[#out + 1] = pack('<HB', 65535, why) end
      end
    end
  end

  local function decide_key(check, key, times, cost)
    -- What the general path has changed in this call is not stored yet, so the key must stay on it.
    if values_of[key] or not decide_bulk_key(check, key, times, cost, now, slack) then decide_in_general(check, key, times, cost) end
  end

  local function save()
    save_records(now, slack)
    save_longs(now, slack)
  end

  return { bulk_check_of = bulk_check_of, decide_key = decide_key, decide_batches = decide_batches, save = save }
end

local general

-- Returns a function that decides keys of a bulk check on the general path.
local function general_fallback(numbers, count, levels, cost)
  local check
  return function(key, times)
    need_limits()
    general = general or general_decider()
    if not check then
      local own = {}
      for index = 1, count do own[index] = limits[numbers[index]] end
      check = general.bulk_check_of(own, levels)
    end
    general.decide_key(check, key, times, cost)
  end
end

-- Decides the keys that the single-limit path has skipped, and inserts their replies.
local function decide_skipped()
  local all, numbers = out, { skipped.limit }
  local ask = general_fallback(numbers, 1, bucket_set_of(numbers, 1), skipped.cost)
  for index = 1, #skipped, 3 do
    out = {}
    ask(skipped[index], skipped[index + 1])
    all[skipped[index + 2]] = table.concat(out)
  end
  out = all
end

local function decide_bulk_checks(checks, at)
  local size = #checks
  while at <= size do
    local limit_count, cost, count, after = unpack_binary('<HdH', checks, at)
    local first, last = limit_count + 1, limit_count + 2 * count
    local fields = { unpack_binary('<' .. string.rep('H', last), checks, after) }
    at = fields[last + 1]
    local levels = bucket_set_of(fields, limit_count)
    local fallback = general_fallback(fields, limit_count, levels, cost)
    -- What the general path has changed in this call is not stored yet, so after it all keys take that path.
    if levels and not general then
      decide_bucket_keys(levels, fields, first, last, cost * UNIT, fallback, at <= size or ARGV[2])
    else
      for field = first, last, 2 do fallback(fields[field], fields[field + 1]) end
    end
  end
end

if not checks_at then need_limits() end
if skipped then decide_skipped() end
decide_bulk_checks(ARGV[1], checks_at or after_limits)
if ARGV[2] then
  need_limits()
  general = general or general_decider()
  general.decide_batches()
end
if general then general.save() end
return table.concat(out)
