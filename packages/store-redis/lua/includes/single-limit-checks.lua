-- The fast path for bulk checks with one limit, a bucket or a simple window, over records with that limit and nothing
-- else: by far the most frequent checks. It comes first and creates no function, because creating the functions of the
-- other paths takes longer than deciding here. The decision is written inline, without avoidable tables and calls.
--
-- Sets `checks_at` to the start of the bulk checks that are not decided yet, nil when it is unknown; and `skipped` to
-- the keys of the previous bulk check that have another record, or a timestamp after `now`: `key, times, position in
-- out` of each.

-- `admitted H, form B`: 0 no record, 1 the previous record follows.
local ADMITTED_NEW = { [0] = '\0\0\0', '\1\0\0' }
local ADMITTED_KNOWN = { [0] = '\0\0\1', '\1\0\1' }

-- A key that is checked again is kept for 8 seconds at least, so that most writes need not extend its expiry.
local AGAIN = 8000000

-- The position of the first limit, and the bytes of a limit without calendar periods. See includes/limits.lua.
local LIMITS_AT, LIMIT_BYTES = 21, 98

local limit_count = unpack_binary('<H', ARGV[1], 19)
local checks_at, skipped = LIMITS_AT + LIMIT_BYTES * limit_count, nil
for limit = 1, limit_count do
  if string.byte(ARGV[1], LIMITS_AT + LIMIT_BYTES * limit - 1) > 0 then
    checks_at = nil
    break
  end
end
if checks_at then
  local keys, checks, size, place = KEYS, ARGV[1], #ARGV[1], 1
  while checks_at <= size and not skipped do
    local limits_of_check, cost, count, after = unpack_binary('<HdH', checks, checks_at)
    if limits_of_check > 1 then break end
    local last = 1 + 2 * count
    local fields = { unpack_binary(count == 1 and '<HHH' or '<' .. string.rep('H', last), checks, after) }
    checks_at = fields[last + 1]
    local limit_at = LIMITS_AT + LIMIT_BYTES * (fields[1] - 1)
    local kind, tag = unpack_binary('<Bc8', checks, limit_at)
    -- The units of a window, or the micro-units of a full bucket.
    local most, window, _, _, units, micros = unpack_binary('<dddddd', checks, limit_at + 33)
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
      local own, kept, at, used, current = header, 0, now, 0, 0
      if raw then
        own = nil
        if #raw == length then own, kept, at, used, current = unpack_binary(format, raw) end
      end
      if own ~= header or (at > now and kind == METER) then
        skipped = skipped or { limit = fields[1], cost = cost }
        local next_one = #skipped
        place = place + 1
        out[place], skipped[next_one + 1], skipped[next_one + 2], skipped[next_one + 3] = '', key, times, place
      else
        -- Integer division: a fraction of a unit must not be rounded up to one.
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
          -- How long to keep the key. Nil when its expiry is late enough: then SETRANGE updates it in place at a third
          -- of the cost.
          local time
          if kind == METER then
            used = used + times * cost * UNIT
            local lasts = used * (micros / units) + 2
            if now + lasts > kept then
              time = raw and 2 * lasts < AGAIN and AGAIN or 2 * lasts
              kept = now + keep_micros(time, slack)
            end
          else
            -- Kept as long as the record matters.
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
  if checks_at > size and not skipped and not ARGV[2] then return table.concat(out) end
end
