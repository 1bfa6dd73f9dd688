-- One limit alone, a level or a plain window, over records of that limit and nothing else: by far the most of all that is
-- asked. It stands before everything else and makes no function, because making the functions of the other ways takes longer
-- than to decide this way. What happens for each subject is written out, without a table or a call that can be avoided.
--
-- Leaves in `runs_at` where the runs begin that are not asked yet, nil when that is not known; and in `skipped` the subjects of
-- the run before whose record is another one, or that the clock is behind of: `key, times, place in out` of each, one after
-- another.

-- `admitted H, how B`: 0 nothing was stored, 1 the record as it was follows.
local ADMITTED_NEW = { [0] = '\0\0\0', '\1\0\0' }
local ADMITTED_KNOWN = { [0] = '\0\0\1', '\1\0\1' }

-- A key that is asked about again is kept for some seconds at least, so that most writes need not see to that.
local AGAIN = 8000000

-- Where limits begin, and the bytes of one without periods of a calendar. See includes/limits.lua.
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
    -- The units of a window, or the micro-units of a full level.
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
        -- What fits is divided as whole numbers: a fraction of a unit must not be rounded into one.
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
          -- How long to keep the key; nothing when it is kept long enough, and its bytes are changed in place, which costs a third.
          local time
          if kind == METER then
            used = used + times * cost * UNIT
            local lasts = used * (micros / units) + 2
            if now + lasts > kept then
              time = raw and 2 * lasts < AGAIN and AGAIN or 2 * lasts
              kept = now + keep_micros(time, slack)
            end
          else
            -- Kept as long as the record says something.
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
end
