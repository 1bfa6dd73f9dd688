-- Bulk checks: many keys checked against the same limits, each a bucket or a simple window. Records with blocks, leases
-- or reservations are left to the general path, which decides the same.

-- How a bulk check reads a record with this header: the positions of its limits and of the other entries. False when
-- the record has entries that it does not support, or lacks one of the limits.
local function view_of(check, header)
  local layout = layout_of(header)
  local view = { format = layout.format, total = layout.total, header = header, size = #header, others = {} }
  view.length = view.size + 8 * view.total
  view.write = '<c' .. view.size .. string.rep('d', view.total)
  local own = {}
  for index, limit in ipairs(check.limits) do
    local place = layout.at[limit.tag]
    if not place or layout.sizes[limit.tag] ~= check.sizes[index] then return false end
    if layout.at[limit.block] or layout.at[limit.lease] then return false end
    view[index] = place
    own[place] = true
  end
  if layout.at[HOLDS] then return false end
  for _, place in pairs(layout.at) do
    if not own[place] then view.others[#view.others + 1] = place end
  end
  return view
end

-- A bulk check over `limits`: its sizes, and the header of a record with these limits and nothing else.
local function bulk_check_of(limits, levels)
  local check = { limits = limits, sizes = {}, views = {} }
  local header = pack('<BH', VERSION, #limits)
  for index, limit in ipairs(limits) do
    check.sizes[index] = limit.kind == COUNTER and 3 or 2
    header = header .. pack('<c8H', limit.tag, check.sizes[index])
  end
  check.header = header
  check.exact = view_of(check, header)
  check.levels = levels
  check.views[header] = check.exact
  return check
end

-- The values of limits without a record.
local function fresh_values(check, now)
  local values = {}
  for index, limit in ipairs(check.limits) do
    values[#values + 1] = 0
    values[#values + 1] = 0
    values[#values + 1] = limit.kind == METER and now or 0
    if check.sizes[index] == 3 then values[#values + 1] = 0 end
  end
  return values
end

-- How often the cost fits into all limits, at most `times`. Leaves the use of each limit, and its time, in `amounts`
-- and `instants` for `take`.
local amounts, instants, earlier = {}, {}, {}

local function count_times(check, view, values, now, cost, times)
  local limits = check.limits
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
      -- Integer division: a fraction of a unit must not be rounded up to one.
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

-- Charges `units` to all limits, after `count_times`. Returns when the last of them is back to its initial state.
local function take(check, view, values, units)
  local limits = check.limits
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

-- The values of the limits in a record that has other entries too.
local function values_text(check, view, values)
  local parts = {}
  for index = 1, #check.limits do
    local place = view[index]
    parts[index] = check.sizes[index] == 2 and pack('<dd', values[place + 1], values[place + 2])
      or pack('<ddd', values[place + 1], values[place + 2], values[place + 3])
  end
  return table.concat(parts)
end

-- The short form of a record of buckets only, when all of them were updated at `now`; otherwise false.
local function shared_form(levels, values, fresh, now, slack)
  if not levels then return false end
  local shared = { levels.header, now + keep_micros(2 * (fresh - now), slack), now }
  for index = 1, levels.last - 2 do
    if values[3 * index] ~= now then return false end
    shared[index + 3] = values[3 * index - 1]
  end
  return pack(levels.format, unpack(shared, 1, levels.last + 1))
end

-- Decides one key, and stores the charge. Returns false when the general path must decide.
local function decide_bulk_key(check, key, times, cost, now, slack)
  local raw = raws[key]
  local view, values, header = check.exact, nil, nil
  if raw and string.byte(raw, 1) == SHARED then
    raw = general_form(raw)
    raws[key] = raw
  end
  if not raw then
    values = fresh_values(check, now)
  elseif #raw == view.length then
    values = { unpack_binary(view.format, raw, view.size + 1) }
    header = string.sub(raw, 1, view.size)
  end
  if raw and header ~= view.header then
    if string.byte(raw, 1) ~= VERSION then return false end
    header = string.sub(raw, 1, 3 + 10 * unpack_binary('<H', raw, 2))
    view = check.views[header]
    if view == nil then
      view = view_of(check, header)
      check.views[header] = view
    end
    if not view then return false end
    values = { unpack_binary(view.format, raw, view.size + 1) }
  end
  times = count_times(check, view, values, now, cost, times)
  if not raw or view == check.exact then
    write_reply(raw, times)
  else
    out[#out + 1] = pack('<HB', times, 2) .. values_text(check, view, values)
  end
  if times == 0 then return true end
  local fresh = take(check, view, values, times * cost)
  for _, place in ipairs(view.others) do
    if values[place] > fresh then fresh = values[place] end
  end
  local record = view == check.exact and shared_form(check.levels, values, fresh, now, slack)
    or pack(view.write, view.header, unpack(values, 1, view.total))
  raws[key] = record
  call('PSETEX', KEYS[key], keep_for(2 * (fresh - now), slack), record)
  return true
end
