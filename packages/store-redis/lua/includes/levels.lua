-- Runs by levels only, over records of these levels and nothing else: by far the most of all that is asked. What happens for
-- each subject is written out, without a table or a call that can be avoided.

-- `admitted H, how B`: 0 nothing was stored, 1 the record as it was follows, 2 the values of the run's limits follow, 4 what
-- follows is `kept d, at d, level d*` after the charge.
local ADMITTED_ONCE = '\1\0\4'
local ADMITTED = { { [0] = '\0\0\0', '\1\0\0' }, { [0] = '\0\0\1', '\1\0\1' } }

-- When all limits are levels: their rates, what they hold in full, how long a micro-unit takes, and how to read and write a
-- record of them and nothing else. Else nil.
local function levels_of(limits)
  -- In places 3, 4 and on, as the levels in the values of a record are.
  local units, micros, full, span, most = { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, 1
  local parts = { pack('<BH', SHARED, #limits) }
  for index, limit in ipairs(limits) do
    if limit.kind ~= METER or limit.capacity <= 0 then return nil end
    local place = index + 2
    units[place], micros[place] = limit.units, limit.micros
    full[place], span[place] = limit.capacity * UNIT, limit.micros / limit.units
    if limit.units > most then most = limit.units end
    parts[index + 1] = pack('<c8H', limit.tag, 2)
  end
  local header = table.concat(parts)
  -- In so many microseconds no product of time and units is beyond the safe integers.
  local levels = { units = units, micros = micros, full = full, span = span, last = #limits + 2, safe = floor(SAFE / most) }
  levels.header = header
  levels.length = #header + 8 * (#limits + 2)
  levels.format = '<c' .. #header .. string.rep('d', #limits + 2)
  -- The part of a record that changes, and where it begins, as Lua and as Redis count.
  levels.values = '<' .. string.rep('d', #limits + 2)
  levels.first, levels.offset = #header + 1, string.format('%d', #header)
  return levels
end

-- A key that is asked about again is kept for some seconds at least, so that most writes need not see to that.
local AGAIN = 8000000

-- How long to keep a record that is fresh `lasts` microseconds from now.
local function keeping_time(lasts, is_known)
  local twice = 2 * lasts
  return is_known and twice < AGAIN and AGAIN or twice
end

-- Stores a record of levels. When its key is kept long enough already, its bytes are changed in place, which costs a third.
local function store_levels(key, record, time, slack)
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

-- One level alone, the default of everything: subjects in fields[first], fields[first + 1] and on, each a key and how often it
-- is asked. Without a table, and without a call but those to Redis. `elsewhere(key, times)` is for subjects whose record is
-- not one of that level and nothing else, or that the clock is behind of.
local function ask_alone(levels, fields, first, last, each, elsewhere)
  local units, micros, full, span = levels.units[3], levels.micros[3], levels.full[3], levels.span[3]
  local header, format, length = levels.header, levels.format, levels.length
  local new, known, keys = ADMITTED[1], ADMITTED[2], KEYS
  local place = #out
  for field = first, last, 2 do
    local key, times = fields[field], fields[field + 1]
    local raw = raws[key]
    local mine, kept, at, level = header, 0, now, 0
    if raw then
      mine = nil
      if #raw == length then mine, kept, at, level = unpack_binary(format, raw) end
    end
    if mine ~= header or at > now then
      elsewhere(key, times)
      place = #out
    else
      local flow = (now - at) * units
      if flow <= SAFE then
        flow = flow / micros
        flow = flow - flow % 1
      else
        flow = flowed(units, micros, now - at)
      end
      level = level > flow and level - flow or 0
      -- Divided as whole numbers: a fraction of a unit must not be rounded into one.
      local fitting = (full - level) / each
      if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
      if raw then
        out[place + 1] = known[times] or pack('<HB', times, 1)
        out[place + 2] = raw
        place = place + 2
      else
        out[place + 1] = new[times] or pack('<HB', times, 0)
        place = place + 1
      end
      if times > 0 then
        level = level + times * each
        local lasts = level * span + 2
        if now + lasts <= kept then
          local record = pack(format, header, kept, now, level)
          raws[key] = record
          call('SETRANGE', keys[key], '0', record)
        else
          local time = keeping_time(lasts, raw)
          store_levels(key, pack(format, header, now + keep_micros(time, slack), now, level), time, slack)
        end
      end
    end
  end
end

-- Several levels. See ask_alone. Every byte of a text that is made costs time here, so the header, which may be most of a
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
        out[place + 1] = raw and ADMITTED[2][0] or ADMITTED[1][0]
        if raw then out[place + 2] = raw end
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
          store_levels(key, header .. left, time, slack)
        else
          call('SETRANGE', keys[key], offset, left)
        end
      end
    end
  end
end
