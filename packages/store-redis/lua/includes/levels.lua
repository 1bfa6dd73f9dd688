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

-- Stores a record of levels. When its key is kept long enough already, its bytes are changed in place, which costs a third.
local function store_levels(key, record, fresh, kept, now, slack)
  raws[key] = record
  if kept then call('SETRANGE', KEYS[key], '0', record) else call('PSETEX', KEYS[key], keep_for(2 * (fresh - now), slack), record) end
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

-- Asks several levels about one subject. `raw` is a record of them and nothing else, or nothing. False when it is another
-- record, or the clock is behind it.
local function ask_shared(levels, raw, key, times, each, now, slack, out)
  local values, how
  if raw then
    values, how = { unpack_binary(levels.format, raw) }, 1
    if values[1] ~= levels.header or values[3] > now then return false end
  else
    values, how = { levels.header, 0, now }, 0
    for index = 1, levels.count do values[index + 3] = 0 end
  end
  times = sink(levels, values, now - values[3], each, times)
  local place = #out
  out[place + 1] = ADMITTED[how + 1][times] or pack('<HB', times, how)
  if raw then out[place + 2] = raw end
  if times == 0 then return true end
  local span, longest, units = levels.span, 0, times * each
  for index = 4, levels.count + 3 do
    local level = values[index] + units
    values[index] = level
    local lasts = level * span[index - 3]
    if lasts > longest then longest = lasts end
  end
  local fresh = now + longest + 2
  local kept = fresh <= values[2]
  if not kept then values[2] = now + keep_micros(2 * (fresh - now), slack) end
  values[3] = now
  store_levels(key, pack(levels.format, unpack(values, 1, levels.count + 3)), fresh, kept, now, slack)
  return true
end

-- One level alone, the default of everything, asked about one subject any number of times: without a table. False when its
-- record is not one of that level and nothing else, or the clock is behind it.
local function ask_level(levels, raw, key, times, each, now, slack, out)
  local kept, at, level, how, header = 0, now, 0, 0, nil
  if raw then
    header, kept, at, level = unpack_binary(levels.format, raw)
    if header ~= levels.header or at > now then return false end
    how = 1
  end
  local units, micros = levels.units[1], levels.micros[1]
  local flow = (now - at) * units
  if flow <= SAFE then
    flow = flow / micros
    flow = flow - flow % 1
  else
    flow = flowed(units, micros, now - at)
  end
  level = level > flow and level - flow or 0
  -- Divided as whole numbers: a fraction of a unit must not be rounded into one.
  local fitting = (levels.full[1] - level) / each
  if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
  local place = #out
  out[place + 1] = ADMITTED[how + 1][times] or pack('<HB', times, how)
  if raw then out[place + 2] = raw end
  if times == 0 then return true end
  level = level + times * each
  local fresh = now + level * levels.span[1] + 2
  local is_kept = fresh <= kept
  if not is_kept then kept = now + keep_micros(2 * (fresh - now), slack) end
  store_levels(key, pack(levels.format, levels.header, kept, now, level), fresh, is_kept, now, slack)
  return true
end

-- Asks levels only about one subject. False when ask_run must.
local function ask_levels(levels, key, times, cost, now, slack, out)
  local raw = raws[key]
  if raw and #raw ~= levels.length then return false end
  if levels.count == 1 then return ask_level(levels, raw, key, times, cost * UNIT, now, slack, out) end
  return ask_shared(levels, raw, key, times, cost * UNIT, now, slack, out)
end
