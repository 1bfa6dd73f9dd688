-- Runs by several levels, over records of these levels and nothing else.

-- `admitted H, how B`: 4 what follows is `kept d, at d, level d*` after the charge.
local ADMITTED_ONCE = '\1\0\4'

-- What a level is known by, of the limit with a number. Where limits are as long as each other it is read from where it stands.
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

-- When all of so many limits, by their numbers, are levels: their rates, what they hold in full, how long a micro-unit takes, and how to read and write a
-- record of them and nothing else. Else nil.
local function levels_of(numbers, count)
  -- In places 3, 4 and on, as the levels in the values of a record are.
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
  -- In so many microseconds no product of time and units is beyond the safe integers.
  local levels = { units = units, micros = micros, full = full, span = span, last = count + 2, safe = floor(SAFE / most) }
  levels.header = header
  levels.length = #header + 8 * (count + 2)
  levels.format = '<c' .. #header .. string.rep('d', count + 2)
  -- The part of a record that changes, and where it begins, as Lua and as Redis count.
  levels.values = '<' .. string.rep('d', count + 2)
  levels.first, levels.offset = #header + 1, string.format('%d', #header)
  return levels
end

-- How long to keep a record of levels that is fresh `lasts` microseconds from now.
local function keeping_time(lasts, is_known)
  local twice = 2 * lasts
  return is_known and twice < AGAIN and AGAIN or twice
end

-- Stores a record of levels.
local function store_levels(key, record, time)
  raws[key] = record
  if time then call('PSETEX', KEYS[key], keep_for(time, slack), record) else call('SETRANGE', KEYS[key], '0', record) end
end

-- Lets the levels in values[3 ...] sink for `elapsed` microseconds. Returns how often `each` fits under all, at most `times`.
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
    -- Divided as whole numbers: a fraction of a unit must not be rounded into one.
    local fitting = (full[place] - level) / each
    if fitting < times then
      if fitting < 1 then return 0 end
      times = fitting - fitting % 1
    end
  end
  return times
end

-- Adds to the levels in values[3 ...]. Returns how long the last of them takes to flow off.
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

-- Asks about subjects, as those of one limit alone are (see includes/single-limit-checks.lua). Every byte of a text that is made costs time here, so the header, which may be most of a
-- record, is neither read nor written again; unless records are needed later in this call, for more that `is_asked`.
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
        -- One sinking and raising, in one go. When a level refuses, the values are spoilt and not used.
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
end
