-- The fast path for bulk checks with one limit, a bucket or a simple window, over records with that limit and nothing
-- else: by far the most frequent checks. It comes first and calls no function of the other paths, because creating
-- these takes longer than deciding here. So the arithmetic of includes/buckets-and-windows.lua is repeated
-- here and in includes/single-bucket-check.lua for the cases that are simple enough. All other keys are skipped:
--   - the record has another form, or other entries;
--   - the time of a bucket is after `now`, or so long ago that the product of time and rate is no safe integer.
--
-- Sets `checks_at` to the start of the bulk checks that are not decided yet, nil when it is unknown; and `skipped` to
-- the skipped keys of the last check: its limits and cost, and `key, times, position in out` of each. Checks after it
-- are not decided here: they may be about a skipped key, and checks of a key are decided in order.

-- The position of the first limit, and the bytes of a limit without calendar periods. See includes/limits.lua.
local LIMITS_AT, LIMIT_BYTES = 21, 98

local argument, size = ARGV[1], #ARGV[1]

-- Whether this is one check of one key by one limit. Nothing else has this length: one limit takes up all but 18 bytes,
-- which is the shortest bulk check.
local is_only = size == 136 and not ARGV[2]

local checks_at = LIMITS_AT + LIMIT_BYTES
local out, skipped
if not is_only then
  out = { pack('<d', now) }
  local limit_count = unpack_binary('<H', argument, 19)
  checks_at = LIMITS_AT + LIMIT_BYTES * limit_count
  for limit = 1, limit_count do
    -- The number of calendar periods is the last byte of a limit.
    if string.byte(argument, LIMITS_AT + LIMIT_BYTES * limit - 1) > 0 then
      checks_at = nil
      break
    end
  end
end

while checks_at and checks_at <= size and not skipped do
  local limits_of_check, cost, count, number, key_at = unpack_binary('<HdHH', argument, checks_at)
  if limits_of_check > 1 then break end
  checks_at = key_at + 4 * count
  local limit_at = LIMITS_AT + LIMIT_BYTES * (number - 1)
  local kind, tag = unpack_binary('<Bc8', argument, limit_at)
  -- `most`: the units of a window, or the micro-units of a full bucket.
  local header, format, length, most, window, units, micros
  if kind == METER then
    most = unpack_binary('<d', argument, limit_at + 33)
    units, micros = unpack_binary('<dd', argument, limit_at + 65)
    header, format, length = '\2\1\0' .. tag .. '\2\0', '<c13ddd', 37
  else
    most, window = unpack_binary('<dd', argument, limit_at + 33)
    if kind == FIXED then
      header, format, length = '\1\1\0' .. tag .. '\2\0', '<c13ddd', 37
    else
      header, format, length = '\1\1\0' .. tag .. '\3\0', '<c13dddd', 45
    end
  end
  local keys, place = KEYS, out and #out
  for _ = 1, count do
    local key, times
    key, times, key_at = unpack_binary('<HH', argument, key_at)
    local raw = raws[key]
    -- A bucket has the level `used` at the time `at`; a window that starts at `at` has `used` units; a sliding counter
    -- has `used` units in the window before that, and `current` in that window.
    local own, kept, at, used, current = header, 0, now, 0, 0
    if raw then
      own = nil
      if #raw == length then own, kept, at, used, current = unpack_binary(format, raw) end
    end
    local flow = kind == METER and (now - at) * units or 0
    if own ~= header or flow < 0 or flow > SAFE then
      out = out or { pack('<d', now) }
      skipped = skipped or { numbers = { number }, cost = cost }
      place = #out + 1
      local last = #skipped
      out[place], skipped[last + 1], skipped[last + 2], skipped[last + 3] = '', key, times, place
    else
      -- How often the cost fits. Rounded down below: a fraction of a unit must not be rounded up to one.
      local fitting
      if kind == METER then
        flow = flow / micros
        flow = flow - flow % 1
        used, at = used > flow and used - flow or 0, now
        fitting = (most - used) / (cost * UNIT)
      else
        local start = at > now and at - at % window or now - now % window
        if kind == FIXED then
          if at < start then used = 0 end
          fitting = (most - used) / cost
        else
          if at < start then used, current = at >= start - window and current or 0, 0 end
          local elapsed = now > start and now - start or 0
          fitting = (most - math.ceil(used * (window - elapsed) / window) - current) / cost
        end
        at = start
      end
      if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
      if times > 0 then
        -- For how many microseconds to keep the key. Nil when its expiry is late enough: then SETRANGE updates it in
        -- place, at a third of the cost.
        local time
        if kind == METER then
          used = used + times * cost * UNIT
          local lasts = used * (micros / units) + 2
          if now + lasts > kept then
            time = raw and 2 * lasts < AGAIN and AGAIN or 2 * lasts
            kept = now + (keep_ms(time, slack) - 500) * 1000
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
        local record = pack(format, header, kept, at, used, current)
        if time then
          call('PSETEX', keys[key], keep_ms(time, slack), record)
        else
          call('SETRANGE', keys[key], '0', record)
        end
        raws[key] = record
      end
      if is_only then return raw and pack('<dHBc0', now, times, 1, raw) or pack('<dHB', now, times, 0) end
      if raw then
        out[place + 1] = times == 1 and '\1\0\1' or times == 0 and '\0\0\1' or pack('<HB', times, 1)
        out[place + 2] = raw
        place = place + 2
      else
        place = place + 1
        out[place] = times == 1 and '\1\0\0' or times == 0 and '\0\0\0' or pack('<HB', times, 0)
      end
    end
  end
end
if checks_at and checks_at > size and not skipped and not ARGV[2] then return table.concat(out) end
