// Made from lua/*.lua by `npm run scripts`; a test compares them. Change those files, not this one.

/** `lua/includes/alone.lua` */
const ALONE = `local ADMITTED_NEW = { [0] = '\\0\\0\\0', '\\1\\0\\0' }
local ADMITTED_KNOWN = { [0] = '\\0\\0\\1', '\\1\\0\\1' }
local AGAIN = 8000000
local LIMITS_AT, LIMIT_BYTES = 21, 98
local limit_count = unpack_binary('<H', ARGV[1], 19)
local runs_at, skipped = LIMITS_AT + LIMIT_BYTES * limit_count, nil
for limit = 1, limit_count do
if string.byte(ARGV[1], LIMITS_AT + LIMIT_BYTES * limit - 1) > 0 then
runs_at = nil
break
end
end
if runs_at then
local keys, runs, size, place = KEYS, ARGV[1], #ARGV[1], 1
while runs_at <= size and not skipped do
local asked, cost, count, after = unpack_binary('<HdH', runs, runs_at)
if asked > 1 then break end
local last = 1 + 2 * count
local fields = { unpack_binary(count == 1 and '<HHH' or '<' .. string.rep('H', last), runs, after) }
runs_at = fields[last + 1]
local limit_at = LIMITS_AT + LIMIT_BYTES * (fields[1] - 1)
local kind, tag = unpack_binary('<Bc8', runs, limit_at)
local most, window, _, _, units, micros = unpack_binary('<dddddd', runs, limit_at + 33)
local header, format, length = nil, '<c13ddd', 37
if kind == METER then
header = pack('<BHc8H', SHARED, 1, tag, 2)
elseif kind == FIXED then
header = pack('<BHc8H', VERSION, 1, tag, 2)
else
header, format, length = pack('<BHc8H', VERSION, 1, tag, 3), '<c13dddd', 45
end
for field = 2, last, 2 do
local key, times = fields[field], fields[field + 1]
local raw = raws[key]
local mine, kept, at, used, current = header, 0, now, 0, 0
if raw then
mine = nil
if #raw == length then mine, kept, at, used, current = unpack_binary(format, raw) end
end
if mine ~= header or (at > now and kind == METER) then
skipped = skipped or { limit = fields[1], cost = cost }
local next_one = #skipped
place = place + 1
out[place], skipped[next_one + 1], skipped[next_one + 2], skipped[next_one + 3] = '', key, times, place
else
local fitting
if kind == METER then
local flow = (now - at) * units
if flow <= SAFE then
flow = flow / micros
flow = flow - flow % 1
else
flow = flowed(units, micros, now - at)
end
used, at = used > flow and used - flow or 0, now
fitting = (most - used) / (cost * UNIT)
else
local opened = at > now and at - at % window or now - now % window
if kind == FIXED then
if at < opened then used = 0 end
fitting = (most - used) / cost
else
if at < opened then used, current = at >= opened - window and current or 0, 0 end
local elapsed = now > opened and now - opened or 0
fitting = (most - ceil(used * (window - elapsed) / window) - current) / cost
end
at = opened
end
if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
if raw then
out[place + 1], out[place + 2] = ADMITTED_KNOWN[times] or pack('<HB', times, 1), raw
place = place + 2
else
place = place + 1
out[place] = ADMITTED_NEW[times] or pack('<HB', times, 0)
end
if times > 0 then
local time
if kind == METER then
used = used + times * cost * UNIT
local lasts = used * (micros / units) + 2
if now + lasts > kept then
time = raw and 2 * lasts < AGAIN and AGAIN or 2 * lasts
kept = now + keep_micros(time, slack)
end
else
local finish = at + window
if kind == FIXED then
used = used + times * cost
else
current, finish = current + times * cost, finish + window
end
if finish > kept then time = 2 * (finish - now) end
kept = finish
end
local record = kind == COUNTER and pack(format, header, kept, at, used, current) or pack(format, header, kept, at, used)
raws[key] = record
if time then call('PSETEX', keys[key], keep_for(time, slack), record) else call('SETRANGE', keys[key], '0', record) end
end
end
end
end
if runs_at > size and not skipped and not ARGV[2] then return table.concat(out) end
end`

/** `lua/includes/flow.lua` */
const FLOW = `local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local call = redis.call
local pack, unpack_binary = struct.pack, struct.unpack
local SAFE = 9007199254740991
local UNIT = 1000000
local function flowed(units, micros, elapsed)
local product = elapsed * units
if product <= SAFE then return floor(product / micros) end
local whole = floor(elapsed / micros)
return whole * units + floor((elapsed - whole * micros) * units / micros)
end
local function time_to_flow(units, micros, level)
return level > 0 and ceil(level / units * micros) + 1 or 0
end`

/** `lua/includes/holds.lua` */
const HOLDS = `local function holds_due(key, now)
local values, layout = load_record(key)
local at = layout.at[HOLDS]
return at and values[at + 1] > 0 and values[at + 1] <= now
end
local function write_holds(key, first, last, now)
load_record(key)
local values, at = entry_for(key, HOLDS, 2, now)
values[at + 1], values[at + 2] = tonumber(first or 0), tonumber(last or 0)
values[at] = values[at + 2]
changed[key] = true
end
local function note_holds(key, set, now)
local first = call('ZRANGE', KEYS[set], 0, 0, 'WITHSCORES')
local last = call('ZREVRANGE', KEYS[set], 0, 0, 'WITHSCORES')
write_holds(key, first[2], last[2], now)
end
local emptied = {}
local function strike_hold(key, set, name, now)
if emptied[set] then return false end
local first = call('ZRANGE', KEYS[set], 0, 1, 'WITHSCORES')
local last = call('ZREVRANGE', KEYS[set], 0, 1, 'WITHSCORES')
call('HDEL', KEYS[set + 1], name)
if call('ZREM', KEYS[set], name) == 0 then
write_holds(key, first[2], last[2], now)
return false
end
emptied[set] = #first == 2
write_holds(key, first[first[1] == name and 4 or 2], last[last[1] == name and 4 or 2], now)
return true
end`

/** `lua/includes/kinds.lua` */
const KINDS = `local METER, QUEUE, FIXED, COUNTER = 1, 2, 3, 4
local LOG, SEGMENTS, HYBRID, SLOTS, ROLLOVER = 5, 6, 7, 8, 9
local LATEST = -1`

/** `lua/includes/leases.lua` */
const LEASES = `local function lasting(limit)
if limit.kind == METER then return time_to_flow(limit.units, limit.micros, limit.limit) end
if limit.edges then return limit.edges[#limit.edges] - limit.edges[1] end
return 2 * limit.window
end
local function write_leases(item, leases, now)
local fresh = 0
for lease = 3, #leases, 3 do fresh = max(fresh, leases[lease]) end
local values, at = place_entry(item.key, item.limit.lease, #leases, now)
values[at] = fresh > 0 and fresh + lasting(item.limit) or 0
for index = 1, #leases do values[at + index] = leases[index] end
keep_beside_leases(item)
changed[item.key] = true
end
local function leased_units(item, now)
local values, layout = load_record(item.key)
local tag = item.limit.lease
local at = layout.at[tag]
if not at then return 0, 0 end
local size = layout.sizes[tag]
local out, soonest, ended, live = 0, 0, {}, {}
for lease = at + 1, at + size, 3 do
local ends = values[lease + 2]
if ends <= now then
ended[#ended + 1] = { ends = ends, units = values[lease + 1] }
else
out = out + values[lease + 1]
soonest = soonest == 0 and ends or min(soonest, ends)
for part = 0, 2 do live[#live + 1] = values[lease + part] end
end
end
if #ended == 0 then return out, soonest end
table.sort(ended, function(one, other) return one.ends < other.ends end)
write_leases(item, live, ended[1].ends)
for _, lease in ipairs(ended) do
correct(item, lease.ends, lease.units, { at = lease.ends, cost = lease.units, mark = 0, holder = 0 })
end
return out, soonest
end
local function add_lease(item, holder, units, ends, now)
local values, layout = load_record(item.key)
local at, leases = layout.at[item.limit.lease], {}
if at then
for index = at + 1, at + layout.sizes[item.limit.lease] do leases[#leases + 1] = values[index] end
end
leases[#leases + 1] = holder
leases[#leases + 1] = units
leases[#leases + 1] = ends
write_leases(item, leases, now)
end
local function strike_lease(item, holder, now)
local values, layout = load_record(item.key)
local tag = item.limit.lease
local at = layout.at[tag]
if not at then return false end
local others, found = {}, false
for lease = at + 1, at + layout.sizes[tag], 3 do
if values[lease] == holder then
found = true
else
for part = 0, 2 do others[#others + 1] = values[lease + part] end
end
end
if found then write_leases(item, others, now) end
return found
end`

/** `lua/includes/levels.lua` */
const LEVELS = `local ADMITTED_ONCE = '\\1\\0\\4'
local function level_of(number)
if limits then
local limit = limits[number]
return limit.kind, limit.tag, limit.limit, limit.units, limit.micros
end
local at = LIMITS_AT + LIMIT_BYTES * (number - 1)
local kind, tag = unpack_binary('<Bc8', ARGV[1], at)
local held, _, _, _, units, micros = unpack_binary('<dddddd', ARGV[1], at + 33)
return kind, tag, held, units, micros
end
local function levels_of(numbers, count)
local units, micros, full, span, most = { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, 1
local parts = { pack('<BH', SHARED, count) }
for index = 1, count do
local kind, tag, held, rate, time = level_of(numbers[index])
if kind ~= METER or held <= 0 then return nil end
local place = index + 2
units[place], micros[place] = rate, time
full[place], span[place] = held, time / rate
if rate > most then most = rate end
parts[index + 1] = pack('<c8H', tag, 2)
end
local header = table.concat(parts)
local levels = { units = units, micros = micros, full = full, span = span, last = count + 2, safe = floor(SAFE / most) }
levels.header = header
levels.length = #header + 8 * (count + 2)
levels.format = '<c' .. #header .. string.rep('d', count + 2)
levels.values = '<' .. string.rep('d', count + 2)
levels.first, levels.offset = #header + 1, string.format('%d', #header)
return levels
end
local function keeping_time(lasts, is_known)
local twice = 2 * lasts
return is_known and twice < AGAIN and AGAIN or twice
end
local function store_levels(key, record, time)
raws[key] = record
if time then call('PSETEX', KEYS[key], keep_for(time, slack), record) else call('SETRANGE', KEYS[key], '0', record) end
end
local function sink(levels, values, elapsed, each, times)
local units, micros, full = levels.units, levels.micros, levels.full
for place = 3, levels.last do
local flow = elapsed * units[place]
if flow <= SAFE then
flow = flow / micros[place]
flow = flow - flow % 1
else
flow = flowed(units[place], micros[place], elapsed)
end
local level = values[place]
level = level > flow and level - flow or 0
values[place] = level
local fitting = (full[place] - level) / each
if fitting < times then
if fitting < 1 then return 0 end
times = fitting - fitting % 1
end
end
return times
end
local function raise(levels, values, units)
local span, longest = levels.span, 0
for place = 3, levels.last do
local level = values[place] + units
values[place] = level
local lasts = level * span[place]
if lasts > longest then longest = lasts end
end
return longest
end
local function ask_together(levels, fields, first, last, each, elsewhere, is_asked)
local units, micros, full, span, safe = levels.units, levels.micros, levels.full, levels.span, levels.safe
local header, format, length, values_at = levels.header, levels.values, levels.length, levels.first
local offset, last_level, keys, find = levels.offset, levels.last, KEYS, string.find
local place = #out
for field = first, last, 2 do
local key, times = fields[field], fields[field + 1]
local raw = raws[key]
local values
if not raw then
values = { 0, now }
for level = 3, last_level do values[level] = 0 end
elseif #raw == length and find(raw, header, 1, true) == 1 then
values = { unpack_binary(format, raw, values_at) }
end
if not values or values[2] > now then
elsewhere(key, times)
place = #out
else
local elapsed, longest = now - values[2], 0
if times == 1 and elapsed <= safe then
for index = 3, last_level do
local level = values[index]
local flow = elapsed * units[index] / micros[index]
if level > flow then level = level - (flow - flow % 1) + each else level = each end
if level > full[index] then
times = 0
break
end
values[index] = level
local lasts = level * span[index]
if lasts > longest then longest = lasts end
end
else
times = sink(levels, values, elapsed, each, times)
longest = raise(levels, values, times * each)
end
if times == 0 then
tell(raw, 0)
place = #out
else
local fresh = now + longest + 2
local time = fresh > values[1] and keeping_time(fresh - now, raw) or nil
if time then values[1] = now + keep_micros(time, slack) end
values[2] = now
local left = pack(format, unpack(values, 1, last_level))
out[place + 1], out[place + 2] = times == 1 and ADMITTED_ONCE or pack('<HB', times, 4), left
place = place + 2
if time or is_asked then
store_levels(key, header .. left, time)
else
call('SETRANGE', keys[key], offset, left)
end
end
end
end
end`

/** `lua/includes/limits.lua` */
const LIMITS = `local function read_limit(blob, at)
local kind, tag, block, lease, capacity, limit, window, extra, burst, units, micros, base, base_capacity, bounds, after =
unpack_binary('<Bc8c8c8dddddddddB', blob, at)
local edges
if bounds > 0 then
edges = { unpack_binary('<' .. string.rep('d', bounds), blob, after) }
after = edges[bounds + 1]
edges[bounds + 1] = nil
end
return {
kind = kind, tag = tag, block = block, lease = lease,
capacity = capacity,
limit = limit, window = window,
extra = extra,
burst = burst, units = units, micros = micros,
base = base, base_capacity = base_capacity,
edges = edges,
}, after
end
local function read_limits()
local count, at = unpack_binary('<H', ARGV[1], 19)
local limits = {}
for index = 1, count do limits[index], at = read_limit(ARGV[1], at) end
return limits, at
end`

/** `lua/includes/lists.lua` */
const LISTS = `local function log_entry(log, index)
return unpack_binary('<dd', log, 16 * index - 7)
end
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
local function log_in_view(log, view, most)
local entries = view.count - view.first + 1
if entries <= 0 then return '' end
if entries <= most then return string.sub(log, 16 * view.first - 7) end
return string.sub(log, 16 * view.first - 7, 16 * (view.first + most - 1) - 8) .. pack('<dd', view.newest, view.total)
end
local function log_add(log, view, limit, units)
local entries = log_in_view(log, view, limit.limit)
local total = view.total + units
local is_full = #entries >= 16 * limit.limit
if #entries > 0 and (view.newest == view.now or is_full) then entries = string.sub(entries, 1, -17) end
return pack('<d', view.before) .. entries .. pack('<dd', view.now, total)
end
local function log_leaves_at(log, view, limit, excess)
local low, high = view.first, view.count
while low < high do
local middle = floor((low + high) / 2)
local _, total = log_entry(log, middle)
if total - view.before >= excess then high = middle else low = middle + 1 end
end
return log_entry(log, low) + limit.window
end
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
local function slots_held(leases, now)
local held = 0
for lease = 1, #leases, 3 do
if leases[lease + 2] > now then held = held + leases[lease + 1] end
end
return held
end
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
end`

/** `lua/includes/meters.lua` */
const METERS = `local function level_at(values, at, limit, now)
if not at then return 0, now end
local since = values[at + 2]
if since > now then now = since end
return max(0, values[at + 1] - flowed(limit.units, limit.micros, now - since)), now
end
local function meter_left(values, at, limit, full, now)
return floor((full - level_at(values, at, limit, now)) / UNIT)
end
local function meter_write(values, at, limit, now, units, to)
local level, since = level_at(values, at, limit, now)
local after = level + units * UNIT
values[to + 1], values[to + 2] = after, since
return since + time_to_flow(limit.units, limit.micros, after), after
end
local function meter_correct(values, at, limit, now, units, charge, to)
local level, since = level_at(values, at, limit, now)
local after
if units >= 0 then
after = min(SAFE, level + units * UNIT)
else
local owed = charge.at == LATEST and -units * UNIT
or charge.cost * UNIT - flowed(limit.units, limit.micros, max(0, since - charge.at))
after = max(0, level - max(0, min(-units * UNIT, owed)))
end
values[to + 1], values[to + 2] = after, since
return (after - level) / UNIT, since + time_to_flow(limit.units, limit.micros, after)
end
local function is_last(values, at, limit, now, charge)
if not at or charge.at == LATEST then return false end
local left = charge.mark - flowed(limit.units, limit.micros, max(0, now - charge.at))
local level = values[at + 1] - flowed(limit.units, limit.micros, max(0, now - values[at + 2]))
return left > 0 and math.abs(level - left) < UNIT / 2
end
local function queue_correct(values, at, limit, now, units, charge, to)
if units >= 0 or not is_last(values, at, limit, now, charge) then
return meter_correct(values, at, limit, now, max(0, units), charge, to)
end
local fresh = { at = max(now, values[at + 2]), cost = charge.cost, mark = charge.mark }
return meter_correct(values, at, limit, now, units, fresh, to)
end
local function rollover_net(values, at, limit, now)
if not at then return 0, now, false end
local level, since = values[at + 1], values[at + 2]
if since > now then now = since end
local flow = flowed(limit.units, limit.micros, now - since)
if flow >= level + 2 * limit.limit then return 0, now, false end
return max(-limit.extra, level - values[at + 3] - flow), now, true
end
local function rollover_left(values, at, limit, now)
return floor((limit.limit - rollover_net(values, at, limit, now)) / UNIT)
end
local function rollover_write(limit, now, net, values, to)
values[to + 1], values[to + 2], values[to + 3] = max(0, net), now, max(0, -net)
return now + time_to_flow(limit.units, limit.micros, values[to + 1] + 2 * limit.limit)
end
local function rollover_correct(values, at, limit, now, units, charge, to)
local net, since, is_known = rollover_net(values, at, limit, now)
local after
if units >= 0 then
after = min(SAFE, net + units * UNIT)
elseif charge.at == LATEST then
after = max(min(0, net), net + units * UNIT)
else
local owed = charge.cost * UNIT - flowed(limit.units, limit.micros, max(0, since - charge.at))
after = max(is_known and -limit.extra or 0, net - max(0, min(-units * UNIT, owed)))
end
local fresh = rollover_write(limit, since, after, values, to)
return (after - net) / UNIT, fresh
end`

/** `lua/includes/opening.lua` */
const OPENING = `local VERSION, SHARED = 1, 2
local now, slack, records = unpack_binary('<ddH', ARGV[1])
if now == 0 then
local time = call('TIME')
now = time[1] * 1000000 + time[2]
end
local raws = call('MGET', unpack(KEYS, 1, records))
local LONGEST = 315360000000
local function keep_ms(micros, slack)
local ms = micros / 1000 + 1000 + slack
local _, exponent = math.frexp(ms)
local most = 2 ^ exponent
if ms <= most * 0.75 then most = most * 0.75 end
return most < LONGEST and ceil(most) or LONGEST
end
local function keep_micros(micros, slack)
return (keep_ms(micros, slack) - 500) * 1000
end
local keeping = {}
local function keep_for(micros, slack)
local ms = keep_ms(micros, slack)
local text = keeping[ms]
if not text then
text = string.format('%.0f', ms)
keeping[ms] = text
end
return text
end`

/** `lua/includes/plain.lua` */
const PLAIN = `local places = {}
local function ask_plainly(fields, count, times)
for index = 1, count do
local field = 5 * index
local limit, key, cost = limits[fields[field - 4]], fields[field - 3], fields[field]
local kind = limit.kind
if kind > COUNTER or kind == QUEUE or limit.extra > 0 or limit.edges or limit.capacity <= 0 or cost == 0 then return false end
local values, layout = values_of[key], layout_at[key]
if not values then values, layout = load_record(key) end
local at = layout.at
if at[HOLDS] or at[limit.block] or at[limit.lease] then return false end
local place = at[limit.tag]
if place and layout.sizes[limit.tag] ~= (kind == COUNTER and 3 or 2) then return false end
places[index] = place or false
local fitting
if kind == METER then
local level, since = 0, now
if place then
level, since = values[place + 1], values[place + 2]
if since < now then
local flow = (now - since) * limit.units
if flow <= SAFE then
flow = flow / limit.micros
flow = flow - flow % 1
else
flow = flowed(limit.units, limit.micros, now - since)
end
level = level > flow and level - flow or 0
since = now
end
end
amounts[index], instants[index] = level, since
fitting = (limit.limit - level) / (cost * UNIT)
elseif kind == FIXED then
local start, used = 0, 0
if place then start, used = values[place + 1], values[place + 2] end
local window = limit.window
local opened = start > now and start - start % window or now - now % window
if start < opened then used = 0 end
amounts[index], instants[index] = used, opened
fitting = (limit.limit - used) / cost
else
local start, previous, current = counts_at(values, place, limit, now)
local elapsed = now > start and now - start or 0
amounts[index], instants[index], earlier[index] = current, start, previous
fitting = (limit.limit - ceil(previous * (limit.window - elapsed) / limit.window) - current) / cost
end
if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
end
local last = #out + 1
out[last] = pack('<H', times)
for index = 1, count do
local place, values = places[index], values_of[fields[5 * index - 3]]
if not place then
out[last + index] = '\\0'
elseif limits[fields[5 * index - 4]].kind == COUNTER then
out[last + index] = pack('<Bddd', 1, values[place + 1], values[place + 2], values[place + 3])
else
out[last + index] = pack('<Bdd', 1, values[place + 1], values[place + 2])
end
end
if times == 0 then return true end
for index = 1, count do
local field = 5 * index
local limit, key, units = limits[fields[field - 4]], fields[field - 3], times * fields[field]
local kind = limit.kind
local values, place = entry_for(key, limit.tag, kind == COUNTER and 3 or 2, now)
local instant, fresh = instants[index], nil
if kind == METER then
local level = amounts[index] + units * UNIT
values[place + 1], values[place + 2] = level, instant
is_level[key] = true
local lasts = level / limit.units * limit.micros + 2
fresh = instant + lasts
local known = values[place]
if not known then
values[place] = fresh
elseif fresh > known then
values[place] = now + keep_micros(2 * lasts < AGAIN and AGAIN or 2 * lasts, slack)
end
elseif kind == FIXED then
values[place], values[place + 1], values[place + 2] = instant + limit.window, instant, amounts[index] + units
else
values[place], values[place + 1] = instant + 2 * limit.window, instant
values[place + 2], values[place + 3] = earlier[index], amounts[index] + units
end
changed[key] = true
end
return true
end`

/** `lua/includes/records.lua` */
const RECORDS = `local EMPTY_HEADER = '\\1\\0\\0'
local HOLDS = '\\0\\0\\0holds'
local layouts = {}
local function layout_of(header)
local layout = layouts[header]
if layout then return layout end
local tags, at, sizes, total = {}, {}, {}, 0
for entry = 1, (#header - 3) / 10 do
local tag, size = unpack_binary('<c8H', header, 10 * entry - 6)
tags[entry], at[tag], sizes[tag] = tag, total + 1, size
total = total + 1 + size
end
layout = { header = header, tags = tags, at = at, sizes = sizes, total = total, format = '<' .. string.rep('d', total) }
layout.write = '<c' .. #header .. string.rep('d', total)
layouts[header] = layout
return layout
end
local level_layouts = {}
local function layout_of_level(header)
local layout = level_layouts[header]
if not layout then
layout = layout_of('\\1' .. string.sub(header, 2))
layout.shared = header
level_layouts[header] = layout
end
return layout
end
local values_of, layout_at, kept_of, changed = {}, {}, {}, {}
local is_level = {}
local function last_fresh(values, layout)
if #layout.tags == 1 then return values[1] end
local last = 0
for _, place in pairs(layout.at) do
if values[place] > last then last = values[place] end
end
return last
end
local function general_form(raw)
local count = unpack_binary('<H', raw, 2)
local size = 3 + 10 * count
local kept, at, after = unpack_binary('<dd', raw, size + 1)
local parts = { string.char(VERSION), string.sub(raw, 2, size) }
for place = after, #raw, 8 do parts[#parts + 1] = pack('<d', kept) .. string.sub(raw, place, place + 7) .. pack('<d', at) end
return table.concat(parts)
end
local function load_record(key)
local values = values_of[key]
if values then return values, layout_at[key] end
local raw = raws[key]
local layout
local version = raw and string.byte(raw, 1)
if version == SHARED and #raw == 37 then
local header, kept, at, level = unpack_binary('<c13ddd', raw)
layout, values = layout_of_level(header), { kept, level, at }
elseif version == SHARED or version == VERSION then
if version == SHARED then raw = general_form(raw) end
layout = layout_of(string.sub(raw, 1, 3 + 10 * unpack_binary('<H', raw, 2)))
values = { unpack_binary(layout.format, raw, #layout.header + 1) }
else
layout = layout_of(EMPTY_HEADER)
values = {}
end
kept_of[key] = last_fresh(values, layout)
values_of[key], layout_at[key] = values, layout
return values, layout
end
local GRACE = 1000000
local function rebuild(key, dropped, now, tag, size)
local values, layout = values_of[key], layout_at[key]
local kept, parts, count = {}, {}, 0
for _, other in ipairs(layout.tags) do
local at = layout.at[other]
if not dropped[other] and (values[at] + GRACE > now or (other == HOLDS and values[at + 1] > 0)) then
for index = at, at + layout.sizes[other] do kept[#kept + 1] = values[index] end
count = count + 1
parts[count] = pack('<c8H', other, layout.sizes[other])
end
end
local place = #kept + 1
if tag then
count = count + 1
parts[count] = pack('<c8H', tag, size)
end
values_of[key], layout_at[key] = kept, layout_of(pack('<BH', VERSION, count) .. table.concat(parts))
return kept, place
end
local function place_entry(key, tag, size, now)
return rebuild(key, { [tag] = true }, now, tag, size)
end
local function entry_for(key, tag, size, now)
local values, layout = values_of[key], layout_at[key]
local place = layout.at[tag]
if place and layout.sizes[tag] == size then return values, place end
return place_entry(key, tag, size, now)
end
local function save_records(now, slack)
for key in pairs(changed) do
local values, layout = values_of[key], layout_at[key]
local fresh = last_fresh(values, layout)
if fresh <= now then
call('DEL', KEYS[key])
else
local record
if is_level[key] and layout.total == 3 then
layout.shared = layout.shared or '\\2' .. string.sub(layout.header, 2)
record = pack('<c13ddd', layout.shared, values[1], values[3], values[2])
else
record = pack(layout.write, layout.header, unpack(values, 1, layout.total))
end
local raw = raws[key]
if raw and #raw == #record and fresh <= kept_of[key] then
call('SETRANGE', KEYS[key], '0', record)
else
call('PSETEX', KEYS[key], keep_for(fresh - now, slack), record)
end
end
end
end`

/** `lua/includes/runs.lua` */
const RUNS = `local function view_of(run, header)
local layout = layout_of(header)
local view = { format = layout.format, total = layout.total, header = header, size = #header, others = {} }
view.length = view.size + 8 * view.total
view.write = '<c' .. view.size .. string.rep('d', view.total)
local mine = {}
for index, limit in ipairs(run.limits) do
local place = layout.at[limit.tag]
if not place or layout.sizes[limit.tag] ~= run.sizes[index] then return false end
if layout.at[limit.block] or layout.at[limit.lease] then return false end
view[index] = place
mine[place] = true
end
if layout.at[HOLDS] then return false end
for _, place in pairs(layout.at) do
if not mine[place] then view.others[#view.others + 1] = place end
end
return view
end
local function run_of(limits, levels)
local run = { limits = limits, sizes = {}, views = {} }
local header = pack('<BH', VERSION, #limits)
for index, limit in ipairs(limits) do
run.sizes[index] = limit.kind == COUNTER and 3 or 2
header = header .. pack('<c8H', limit.tag, run.sizes[index])
end
run.header = header
run.exact = view_of(run, header)
run.levels = levels
run.views[header] = run.exact
return run
end
local function fresh_values(run, now)
local values = {}
for index, limit in ipairs(run.limits) do
values[#values + 1] = 0
values[#values + 1] = 0
values[#values + 1] = limit.kind == METER and now or 0
if run.sizes[index] == 3 then values[#values + 1] = 0 end
end
return values
end
local amounts, instants, earlier = {}, {}, {}
local function count_times(run, view, values, now, cost, times)
local limits = run.limits
for index = 1, #limits do
local limit = limits[index]
local place = view[index]
local kind, fitting = limit.kind, nil
if kind == METER then
local level, since = values[place + 1], values[place + 2]
if since < now then
local flow = (now - since) * limit.units
if flow <= SAFE then
flow = flow / limit.micros
flow = flow - flow % 1
else
flow = flowed(limit.units, limit.micros, now - since)
end
level = level > flow and level - flow or 0
since = now
end
amounts[index], instants[index] = level, since
fitting = (limit.limit - level) / (cost * UNIT)
elseif kind == FIXED then
local start = values[place + 1]
local window = limit.window
local first = start > now and start - start % window or now - now % window
local used = start >= first and values[place + 2] or 0
amounts[index], instants[index] = used, first
fitting = (limit.limit - used) / cost
else
local start, previous, current = counts_at(values, place, limit, now)
local elapsed = now > start and now - start or 0
if elapsed > limit.window then elapsed = limit.window end
amounts[index], instants[index], earlier[index] = current, start, previous
fitting = (limit.limit - ceil(previous * (limit.window - elapsed) / limit.window) - current) / cost
end
if limit.capacity <= 0 then return 0 end
if fitting < times then
if fitting < 1 then return 0 end
times = fitting - fitting % 1
end
end
return times
end
local function take(run, view, values, units)
local limits = run.limits
local last = 0
for index = 1, #limits do
local limit = limits[index]
local place = view[index]
local kind, instant, fresh = limit.kind, instants[index], nil
if kind == METER then
local level = amounts[index] + units * UNIT
values[place + 1], values[place + 2] = level, instant
fresh = instant + level / limit.units * limit.micros + 2
elseif kind == FIXED then
values[place + 1], values[place + 2] = instant, amounts[index] + units
fresh = instant + limit.window
else
values[place + 1], values[place + 2], values[place + 3] = instant, earlier[index], amounts[index] + units
fresh = instant + 2 * limit.window
end
values[place] = fresh
if fresh > last then last = fresh end
end
return last
end
local function values_text(run, view, values)
local parts = {}
for index = 1, #run.limits do
local place = view[index]
parts[index] = run.sizes[index] == 2 and pack('<dd', values[place + 1], values[place + 2])
or pack('<ddd', values[place + 1], values[place + 2], values[place + 3])
end
return table.concat(parts)
end
local function shared_form(levels, values, fresh, now, slack)
if not levels then return false end
local shared = { levels.header, now + keep_micros(2 * (fresh - now), slack), now }
for index = 1, levels.last - 2 do
if values[3 * index] ~= now then return false end
shared[index + 3] = values[3 * index - 1]
end
return pack(levels.format, unpack(shared, 1, levels.last + 1))
end
local function ask_run(run, key, times, cost, now, slack)
local raw = raws[key]
local view, values, header = run.exact, nil, nil
if raw and string.byte(raw, 1) == SHARED then
raw = general_form(raw)
raws[key] = raw
end
if not raw then
values = fresh_values(run, now)
elseif #raw == view.length then
values = { unpack_binary(view.format, raw, view.size + 1) }
header = string.sub(raw, 1, view.size)
end
if raw and header ~= view.header then
if string.byte(raw, 1) ~= VERSION then return false end
header = string.sub(raw, 1, 3 + 10 * unpack_binary('<H', raw, 2))
view = run.views[header]
if view == nil then
view = view_of(run, header)
run.views[header] = view
end
if not view then return false end
values = { unpack_binary(view.format, raw, view.size + 1) }
end
times = count_times(run, view, values, now, cost, times)
if not raw or view == run.exact then
tell(raw, times)
else
out[#out + 1] = pack('<HB', times, 2) .. values_text(run, view, values)
end
if times == 0 then return true end
local fresh = take(run, view, values, times * cost)
for _, place in ipairs(view.others) do
if values[place] > fresh then fresh = values[place] end
end
local record = view == run.exact and shared_form(run.levels, values, fresh, now, slack)
or pack(view.write, view.header, unpack(values, 1, view.total))
raws[key] = record
call('PSETEX', KEYS[key], keep_for(2 * (fresh - now), slack), record)
return true
end`

/** `lua/includes/states.lua` */
const STATES = `local longs, long_changed = {}, {}
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
call('PSETEX', KEYS[key], keep_for(state.fresh - now, slack), state.log or write_numbers(state.numbers))
end
end
end
local function base_of(limit)
return { kind = limit.base, capacity = limit.base_capacity, limit = limit.limit, window = limit.window,
extra = limit.extra, edges = limit.edges }
end
local function base_size(limit)
if limit.base == COUNTER then return 3 end
return limit.extra > 0 and 3 or 2
end
local function entry_size(limit)
local kind = limit.kind
if kind == METER or kind == QUEUE then return 2 end
if kind == FIXED then return limit.extra > 0 and 3 or 2 end
if kind == COUNTER or kind == ROLLOVER then return 3 end
if kind ~= HYBRID then return 0 end
return (limit.base == FIXED or limit.base == COUNTER) and 2 + base_size(limit) or 2
end
local function place_of(item)
local values, layout = load_record(item.key)
local place = layout.at[item.limit.tag]
if place and layout.sizes[item.limit.tag] ~= entry_size(item.limit) then place = nil end
return values, place
end
local function window_left(item, limit, values, at, now)
if limit.kind == FIXED then return fixed_left(values, at, limit, now) end
if limit.kind == COUNTER then return counter_left(values, at, limit, now) end
if limit.kind == LOG then return log_left(log_view(load_long(item).log, limit, now), limit) end
return ring_left(load_long(item).numbers, limit, now)
end
local function reaches(item, now)
local limit = item.limit
if not limit.edges then return true end
local values, at = place_of(item)
if at and limit.kind == HYBRID then at = at + 2 end
return window_now(values, at, limit, now) ~= nil
end
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
local function charge_hybrid(item, now, units)
local limit = item.limit
local values, at = place_of(item)
local from_base, _, base, base_left, burst_at, burst_left = hybrid_parts(item, values, at, now)
local by_base = min(from_base, units)
local by_burst = units - by_base
local is_new = not at
values, at = entry_for(item.key, limit.tag, entry_size(limit), now)
if is_new then
for index = 1, entry_size(limit) do values[at + index] = 0 end
end
local burst_fresh, base_fresh = 0, 0
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
local function keep_beside_leases(item)
local values, layout = values_of[item.key], layout_at[item.key]
local state, leases = layout.at[item.limit.tag], layout.at[item.limit.lease]
if state and leases and values[leases] > values[state] then values[state] = values[leases] end
end
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
local values, to = entry_for(item.key, limit.tag, entry_size(limit), now)
local from = at and to or nil
changed[item.key] = true
if kind == METER or kind == QUEUE then
local fresh, level = meter_write(values, from, limit, now, units, to)
values[to] = fresh
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
local function correct_base(item, base, values, at, now, units, past)
if base.kind == LOG or base.kind == SEGMENTS then
local applied = correct_long(item, base, now, units, past) or 0
return applied, load_long(item).fresh or now + 2 * base.window
end
if base.kind == COUNTER then return counter_correct(values, at, base, now, units, past, at) end
local applied = fixed_applied(values, at, base, now, units, past)
if not window_now(values, at, base, now) then return 0, values[at - 2] end
return applied, fixed_write(values, at, base, now, applied, at)
end
local function correct_hybrid(item, now, units, past)
local limit = item.limit
local values, at = place_of(item)
if not at and units <= 0 then return 0 end
local is_new = not at
values, at = entry_for(item.key, limit.tag, entry_size(limit), now)
if is_new then
for index = 1, entry_size(limit) do values[at + index] = 0 end
end
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
local function correct(item, now, units, past)
local limit = item.limit
local kind = limit.kind
if kind == HYBRID then return correct_hybrid(item, now, units, past) end
if item.long > 0 then return correct_long(item, limit, now, units, past) end
local _, at = place_of(item)
if not at and units <= 0 then return 0 end
local values, to = entry_for(item.key, limit.tag, entry_size(limit), now)
local from = at and to or nil
changed[item.key] = true
local applied
if kind == METER then
applied, values[to] = meter_correct(values, from, limit, now, units, past, to)
elseif kind == QUEUE then
applied, values[to] = queue_correct(values, from, limit, now, units, past, to)
elseif kind == ROLLOVER then
applied, values[to] = rollover_correct(values, from, limit, now, units, past, to)
elseif kind == COUNTER then
applied, values[to] = counter_correct(values, from, limit, now, units, past, to)
else
applied = fixed_applied(values, from, limit, now, units, past)
if window_now(values, from, limit, now) then values[to] = fixed_write(values, from, limit, now, applied, to) end
end
keep_beside_leases(item)
return applied
end`

/** `lua/includes/windows.lua` */
const WINDOWS = `local function window_of(limit, now)
local edges = limit.edges
if not edges then
local start = floor(now / limit.window) * limit.window
return start, start + limit.window
end
for index = 1, #edges - 1 do
if now >= edges[index] and now < edges[index + 1] then return edges[index], edges[index + 1] end
end
end
local function window_now(values, at, limit, now)
if at and values[at + 1] > now then now = values[at + 1] end
return window_of(limit, now)
end
local function used_in(values, at, start)
return at and values[at + 1] >= start and values[at + 2] or 0
end
local function clamp_carry(limit, unused)
return max(0, min(limit.extra, unused))
end
local function carried_into(values, at, limit, start)
if limit.extra == 0 or not at then return 0 end
local carried = clamp_carry(limit, values[at + 3] or 0)
if values[at + 1] >= start then return carried end
local before = window_of(limit, start - 1)
if not before then return nil end
if values[at + 1] >= before then return clamp_carry(limit, limit.limit + carried - values[at + 2]) end
local earlier = window_of(limit, before - 1)
if not earlier then return nil end
return values[at + 1] >= earlier and limit.extra or 0
end
local function fixed_fresh(limit, finish)
if limit.extra == 0 then return finish end
if limit.edges then return finish + 2 * (limit.edges[#limit.edges] - limit.edges[1]) end
return finish + 2 * limit.window
end
local function fixed_left(values, at, limit, now)
local start = window_now(values, at, limit, now)
if not start then return nil end
local carried = carried_into(values, at, limit, start)
return carried and limit.limit + carried - used_in(values, at, start)
end
local function fixed_write(values, at, limit, now, units, to)
local start, finish = window_now(values, at, limit, now)
local used, carried = used_in(values, at, start), carried_into(values, at, limit, start)
values[to + 1], values[to + 2] = start, used + units
if limit.extra > 0 then values[to + 3] = carried end
return fixed_fresh(limit, finish)
end
local function fixed_applied(values, at, limit, now, units, charge)
if units >= 0 then return units end
local start, finish = window_now(values, at, limit, now)
if not start then return 0 end
if charge.at ~= LATEST and (charge.at < start or charge.at >= finish) then return 0 end
return -min(-units, charge.cost, used_in(values, at, start))
end
local function counts_at(values, at, limit, now)
local window = limit.window
if not at then return floor(now / window) * window, 0, 0 end
local start = floor(max(now, values[at + 1]) / window) * window
if values[at + 1] >= start then return start, values[at + 2], values[at + 3] end
return start, values[at + 1] >= start - window and values[at + 3] or 0, 0
end
local function counter_left(values, at, limit, now)
local start, previous, current = counts_at(values, at, limit, now)
local elapsed = max(0, min(limit.window, now - start))
return limit.limit - ceil(previous * (limit.window - elapsed) / limit.window) - current
end
local function counter_write(values, at, limit, now, units, to)
local start, previous, current = counts_at(values, at, limit, now)
values[to + 1], values[to + 2], values[to + 3] = start, previous, current + units
return start + (current + units > 0 and 2 or 1) * limit.window
end
local function counter_correct(values, at, limit, now, units, charge, to)
local start, previous, current = counts_at(values, at, limit, now)
local applied = units
if units >= 0 then
current = current + units
elseif charge.at == LATEST then
local of_current = min(-units, current)
local of_previous = min(-units - of_current, previous)
applied = -(of_current + of_previous)
current, previous = current - of_current, previous - of_previous
elseif charge.at >= start then
applied = -min(-units, charge.cost, current)
current = current + applied
elseif charge.at >= start - limit.window then
applied = -min(-units, charge.cost, previous)
previous = previous + applied
else
applied = 0
end
values[to + 1], values[to + 2], values[to + 3] = start, previous, current
return applied, start + (current > 0 and 2 or 1) * limit.window
end`

/** `lua/beat-1.lua` */
export const BEAT_SCRIPT: string = `local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local silence = tonumber(ARGV[2])
if silence == 0 then
local count = call('ZCARD', KEYS[1])
return count - call('ZREM', KEYS[1], ARGV[1])
end
call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - silence))
call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(silence / 1000) + 1000))
return call('ZCARD', KEYS[1])`

/** `lua/change-n.lua` */
export const CHANGE_SCRIPT: string = `${FLOW}
${OPENING}
${RECORDS}
${HOLDS}
local micros = unpack_binary('<d', ARGV[2])
if holds_due(1, now) then return pack('<dB', now, 0) end
local dropped = {}
for place = 1, #ARGV[3], 8 do dropped[string.sub(ARGV[3], place, place + 7)] = true end
if micros > 0 then
local values, at = rebuild(1, dropped, now, string.sub(ARGV[3], 1, 8), 1)
values[at], values[at + 1] = now + micros, now + micros
else
rebuild(1, dropped, now)
end
for key = 2, records do call('DEL', KEYS[key]) end
changed[1] = true
save_records(now, slack)
return pack('<dB', now, 1)`

/** `lua/decide-n.lua` */
export const DECIDE_SCRIPT: string = `${FLOW}
${KINDS}
${OPENING}
local out = { pack('<d', now) }
${ALONE}
${LIMITS}
local limits, after_limits
local function need_limits()
if not limits then limits, after_limits = read_limits() end
end
local function tell(raw, times)
local place = #out
if raw then
out[place + 1], out[place + 2] = ADMITTED_KNOWN[times] or pack('<HB', times, 1), raw
else
out[place + 1] = ADMITTED_NEW[times] or pack('<HB', times, 0)
end
end
${LEVELS}
local function general_way()
${RECORDS}
${WINDOWS}
${METERS}
${LISTS}
${STATES}
${LEASES}
${HOLDS}
${RUNS}
${PLAIN}
local ITEM = {}
local function item_format(count)
local format = ITEM[count]
if not format then
format = '<' .. string.rep('HHHHd', count)
ITEM[count] = format
end
return format
end
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
local function times_fitting(item, times)
if item.limit.capacity <= 0 then return 0 end
if item.cost == 0 then return item.left >= 0 and times or 0 end
if item.left < item.cost then return 0 end
return times == 1 and 1 or min(times, floor(item.left / item.cost))
end
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
local function ask_generally(run, key, times, cost)
out[#out + 1] = pack('<HB', 0, 3)
local items = {}
for index, limit in ipairs(run.limits) do items[index] = { limit = limit, key = key, long = 0, holds = 0, cost = cost } end
local why = answer(5, times, items, 0, 0)
if why then out[#out + 1] = pack('<HB', 65535, why) end
end
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
if values_of[key] or not ask_run(run, key, times, cost, now, slack) then ask_generally(run, key, times, cost) end
end
local function save()
save_records(now, slack)
save_longs(now, slack)
end
return { run_of = run_of, ask_subject = ask_subject, ask_questions = ask_questions, save = save }
end
local general
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
return table.concat(out)`

/** `lua/probe-1.lua` */
export const PROBE_SCRIPT: string = `local call, key = redis.call, KEYS[1]
call('TIME')
call('DEL', key)
call('MGET', key)
call('SETRANGE', key, '0', '')
call('PEXPIRE', key, '1')
call('ZADD', key, 'XX', '0', '-')
call('ZREM', key, '-')
call('ZCARD', key)
call('ZRANGE', key, '0', '0')
call('ZREVRANGE', key, '0', '0')
call('ZRANGEBYSCORE', key, '0', '0')
call('ZREMRANGEBYSCORE', key, '0', '0')
call('HMGET', key, '-')
call('HDEL', key, '-')
call('PSETEX', key, '1', '-')
call('DEL', key)
call('HSET', key, '-', '-')
return call('DEL', key)`

/** `lua/scan-1.lua` */
export const SCAN_SCRIPT: string = `return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', '1000')`

/** `lua/settle-n.lua` */
export const SETTLE_SCRIPT: string = `${FLOW}
${KINDS}
${LIMITS}
${OPENING}
${RECORDS}
${WINDOWS}
${METERS}
${LISTS}
${STATES}
${LEASES}
${HOLDS}
local SETTLED, LATE, GONE, DUE, BEYOND = 0, 1, 2, 3, 4
local limits = read_limits()
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
return table.concat(out)`
