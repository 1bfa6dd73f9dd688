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

-- The same as one sinking and raising, in one go, for at most levels.safe microseconds. Nil when a level refuses, and then
-- the values are spoilt.
local function take_once(levels, values, elapsed, each)
  local units, micros, full, span, longest = levels.units, levels.micros, levels.full, levels.span, 0
  for place = 3, levels.last do
    local level = values[place]
    local flow = elapsed * units[place] / micros[place]
    if level > flow then level = level - (flow - flow % 1) + each else level = each end
    if level > full[place] then return nil end
    values[place] = level
    local lasts = level * span[place]
    if lasts > longest then longest = lasts end
  end
  return longest
end

-- Asks several levels about one subject. `raw` is a record of them and nothing else, or nothing. False when it is another
-- record, or the clock is behind it. Every byte of a text that is made costs time here, so the header, which may be most of a
-- record, is neither read nor written again; unless the record `is_needed` later in this call.
local function ask_shared(levels, raw, key, times, each, is_needed)
  local values, how
  if raw then
    if string.find(raw, levels.header, 1, true) ~= 1 then return false end
    values, how = { unpack_binary(levels.values, raw, levels.first) }, 1
    if values[2] > now then return false end
  else
    values, how = { 0, now }, 0
    for place = 3, levels.last do values[place] = 0 end
  end
  local longest
  local elapsed = now - values[2]
  if times == 1 and elapsed <= levels.safe then
    longest = take_once(levels, values, elapsed, each)
    times = longest and 1 or 0
  else
    times = sink(levels, values, elapsed, each, times)
    longest = raise(levels, values, times * each)
  end
  local place = #out
  if times == 0 then
    out[place + 1] = ADMITTED[how + 1][0]
    if raw then out[place + 2] = raw end
    return true
  end
  local kept, fresh = values[1], now + longest + 2
  local time = fresh > kept and keeping_time(fresh - now, raw) or nil
  if time then values[1] = now + keep_micros(time, slack) end
  values[2] = now
  local left = pack(levels.values, unpack(values, 1, levels.last))
  out[place + 1], out[place + 2] = times == 1 and ADMITTED_ONCE or pack('<HB', times, 4), left
  if time or is_needed then
    store_levels(key, levels.header .. left, time, slack)
  else
    call('SETRANGE', KEYS[key], levels.offset, left)
  end
  return true
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

-- Several levels. See ask_alone. `is_needed` when more is asked after this in the same call.
local function ask_together(levels, fields, first, last, each, elsewhere, is_needed)
  for field = first, last, 2 do
    local key, times = fields[field], fields[field + 1]
    local raw = raws[key]
    local is_done = (not raw or #raw == levels.length) and ask_shared(levels, raw, key, times, each, is_needed)
    if not is_done then elsewhere(key, times) end
  end
end
