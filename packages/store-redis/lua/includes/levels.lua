-- Runs by levels only, over records of these levels and nothing else: by far the most of all that is asked. What happens for
-- each subject is written out, without a table or a call that can be avoided.

-- `admitted H, how B`: 0 nothing was stored, 1 the record as it was follows, 2 the values of the run's limits follow.
local ADMITTED = { { [0] = '\0\0\0', '\1\0\0' }, { [0] = '\0\0\1', '\1\0\1' } }

-- When all limits are levels: their rates, what they hold in full, how long a micro-unit takes, and how to read and write a
-- record of them and nothing else. Else nil.
local function levels_of(limits)
  local levels = { units = {}, micros = {}, full = {}, span = {}, count = #limits }
  local header = pack('<BH', SHARED, #limits)
  for index, limit in ipairs(limits) do
    if limit.kind ~= METER or limit.capacity <= 0 then return nil end
    levels.units[index], levels.micros[index] = limit.units, limit.micros
    levels.full[index], levels.span[index] = limit.capacity * UNIT, limit.micros / limit.units
    header = header .. pack('<c8H', limit.tag, 2)
  end
  levels.header = header
  levels.length = #header + 8 * (#limits + 2)
  levels.format = '<c' .. #header .. string.rep('d', #limits + 2)
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

-- Lets the levels in values[4 ...] sink for `elapsed` microseconds. Returns how often `each` fits under all, at most `times`.
local function sink(levels, values, elapsed, each, times)
  local units, micros, full = levels.units, levels.micros, levels.full
  for index = 1, levels.count do
    local flow = elapsed * units[index]
    if flow <= SAFE then
      flow = flow / micros[index]
      flow = flow - flow % 1
    else
      flow = flowed(units[index], micros[index], elapsed)
    end
    local level = values[index + 3]
    level = level > flow and level - flow or 0
    values[index + 3] = level
    -- Divided as whole numbers: a fraction of a unit must not be rounded into one.
    local fitting = (full[index] - level) / each
    if fitting < times then
      if fitting < 1 then return 0 end
      times = fitting - fitting % 1
    end
  end
  return times
end

-- Adds to the levels in values[4 ...]. Returns how long the last of them takes to flow off.
local function raise(levels, values, units)
  local span, longest = levels.span, 0
  for index = 1, levels.count do
    local level = values[index + 3] + units
    values[index + 3] = level
    local lasts = level * span[index]
    if lasts > longest then longest = lasts end
  end
  return longest
end

-- The same as one sinking and raising, in one go. Nil when a level refuses, and then the values are spoilt.
local function take_once(levels, values, elapsed, each)
  local units, micros, full, span, longest = levels.units, levels.micros, levels.full, levels.span, 0
  for index = 1, levels.count do
    local flow = elapsed * units[index]
    if flow <= SAFE then
      flow = flow / micros[index]
      flow = flow - flow % 1
    else
      flow = flowed(units[index], micros[index], elapsed)
    end
    local level = values[index + 3]
    level = (level > flow and level - flow or 0) + each
    if level > full[index] then return nil end
    values[index + 3] = level
    local lasts = level * span[index]
    if lasts > longest then longest = lasts end
  end
  return longest
end

-- Asks several levels about one subject. `raw` is a record of them and nothing else, or nothing. False when it is another
-- record, or the clock is behind it.
local function ask_shared(levels, raw, key, times, each)
  local values, how
  if raw then
    values, how = { unpack_binary(levels.format, raw) }, 1
    if values[1] ~= levels.header or values[3] > now then return false end
  else
    values, how = { levels.header, 0, now }, 0
    for index = 1, levels.count do values[index + 3] = 0 end
  end
  local longest
  if times == 1 then
    longest = take_once(levels, values, now - values[3], each)
    times = longest and 1 or 0
  else
    times = sink(levels, values, now - values[3], each, times)
    longest = raise(levels, values, times * each)
  end
  local place = #out
  out[place + 1] = ADMITTED[how + 1][times] or pack('<HB', times, how)
  if raw then out[place + 2] = raw end
  if times == 0 then return true end
  local fresh = now + longest + 2
  local time = fresh > values[2] and keeping_time(fresh - now, raw) or nil
  if time then values[2] = now + keep_micros(time, slack) end
  values[3] = now
  store_levels(key, pack(levels.format, unpack(values, 1, levels.count + 3)), time, slack)
  return true
end

-- One level alone, the default of everything: subjects in fields[first], fields[first + 1] and on, each a key and how often it
-- is asked. Without a table, and without a call but those to Redis. `elsewhere(key, times)` is for subjects whose record is
-- not one of that level and nothing else, or that the clock is behind of.
local function ask_alone(levels, fields, first, last, each, elsewhere)
  local units, micros, full, span = levels.units[1], levels.micros[1], levels.full[1], levels.span[1]
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

-- Several levels. See ask_alone.
local function ask_together(levels, fields, first, last, each, elsewhere)
  for field = first, last, 2 do
    local key, times = fields[field], fields[field + 1]
    local raw = raws[key]
    local is_done = (not raw or #raw == levels.length) and ask_shared(levels, raw, key, times, each)
    if not is_done then elsewhere(key, times) end
  end
end
