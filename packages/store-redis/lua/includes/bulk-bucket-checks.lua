-- The fast path for bulk checks with several buckets, over records with these buckets and nothing else.

-- `admitted H, form B`: 4 `kept d, at d, level d*` after the charge follows.
local ADMITTED_ONCE = '\1\0\4'

-- The properties of a bucket, by the index of its limit. While all limits have the same length, they are read in place.
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

-- When all of these limits are buckets: their rates, capacities, microseconds per micro-unit, and the format of a
-- record with these buckets and nothing else. Otherwise nil.
local function bucket_set_of(numbers, count)
  -- Starting at index 3, like the levels in the values of a record.
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
  -- Up to this elapsed time, the product of time and units is a safe integer.
  local levels = { units = units, micros = micros, full = full, span = span, last = count + 2, safe = floor(SAFE / most) }
  levels.header = header
  levels.length = #header + 8 * (count + 2)
  levels.format = '<c' .. #header .. string.rep('d', count + 2)
  -- The part of a record that changes, and its position, counted from 1 (Lua) and from 0 (Redis).
  levels.values = '<' .. string.rep('d', count + 2)
  levels.first, levels.offset = #header + 1, string.format('%d', #header)
  return levels
end

-- How long to keep a record whose buckets are empty `lasts` microseconds from now.
local function keeping_time(lasts, is_known)
  local twice = 2 * lasts
  return is_known and twice < AGAIN and AGAIN or twice
end

local function store_levels(key, record, time)
  raws[key] = record
  if time then call('PSETEX', KEYS[key], keep_for(time, slack), record) else call('SETRANGE', KEYS[key], '0', record) end
end

-- Leaks the levels in values[3 ...] for `elapsed` microseconds. Returns how often `each` fits into all of them, at most
-- `times`.
local function leak(levels, values, elapsed, each, times)
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
    -- Integer division: a fraction of a unit must not be rounded up to one.
    local fitting = (full[place] - level) / each
    if fitting < times then
      if fitting < 1 then return 0 end
      times = fitting - fitting % 1
    end
  end
  return times
end

-- Adds to the levels in values[3 ...]. Returns the microseconds until the last of them has leaked.
local function fill(levels, values, units)
  local span, longest = levels.span, 0
  for place = 3, levels.last do
    local level = values[place] + units
    values[place] = level
    local lasts = level * span[place]
    if lasts > longest then longest = lasts end
  end
  return longest
end

-- Decides keys, like includes/single-limit-checks.lua. Every byte of a created string costs time here, so the header,
-- which may be most of a record, is neither read nor written again; unless records are needed later in this call
-- (`is_needed_later`).
local function decide_bucket_keys(levels, fields, first, last, each, fallback, is_needed_later)
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
      fallback(key, times)
      place = #out
    else
      local elapsed, longest = now - values[2], 0
      if times == 1 and elapsed <= safe then
        -- `leak` and `fill` in one loop. When a bucket denies, the values are invalid and not used.
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
        times = leak(levels, values, elapsed, each, times)
        longest = fill(levels, values, times * each)
      end
      if times == 0 then
        write_reply(raw, 0)
        place = #out
      else
        local fresh = now + longest + 2
        local time = fresh > values[1] and keeping_time(fresh - now, raw) or nil
        if time then values[1] = now + keep_micros(time, slack) end
        values[2] = now
        local left = pack(format, unpack(values, 1, last_level))
        out[place + 1], out[place + 2] = times == 1 and ADMITTED_ONCE or pack('<HB', times, 4), left
        place = place + 2
        if time or is_needed_later then
          store_levels(key, header .. left, time)
        else
          call('SETRANGE', keys[key], offset, left)
        end
      end
    end
  end
end
