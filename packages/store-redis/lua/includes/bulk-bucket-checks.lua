-- The fast path for bulk checks with several buckets, over records with these buckets and nothing else. Other keys are
-- skipped, as in includes/single-limit-checks.lua. Every byte of a created string costs time here, so the header, which
-- may be most of a record, is neither read nor written again; unless records are needed later in this call.

while checks_at and checks_at <= size and not skipped do
  local limit_count, cost, count, key_at = unpack_binary('<HdH', argument, checks_at)
  local numbers = { unpack_binary('<' .. string.rep('H', limit_count), argument, key_at) }
  key_at, numbers[limit_count + 1] = numbers[limit_count + 1], nil
  -- The buckets of the check. Lists start at index 3, like the levels in the values of a record.
  local units, micros, full, parts = { 0, 0 }, { 0, 0 }, { 0, 0 }, { pack('<BH', SHARED, limit_count) }
  -- Microseconds per micro-unit, for expiry only.
  local slowness = { 0, 0 }
  local last = limit_count + 2
  for index = 1, limit_count do
    local limit_at = LIMITS_AT + LIMIT_BYTES * (numbers[index] - 1)
    local kind, tag = unpack_binary('<Bc8', argument, limit_at)
    if kind ~= METER then
      last = nil
      break
    end
    local place = index + 2
    full[place] = unpack_binary('<d', argument, limit_at + 33)
    units[place], micros[place] = unpack_binary('<dd', argument, limit_at + 65)
    slowness[place] = micros[place] / units[place]
    parts[index + 1] = tag .. '\2\0'
  end
  if not last then break end
  checks_at = key_at + 4 * count
  local is_needed_later = checks_at <= size or ARGV[2]
  local header, format, each = table.concat(parts), '<' .. string.rep('d', last), cost * UNIT
  local length, values_at, offset = #header + 8 * last, #header + 1, string.format('%d', #header)
  local keys, place, find = KEYS, #out, string.find
  for _ = 1, count do
    local key, times
    key, times, key_at = unpack_binary('<HH', argument, key_at)
    local raw = raws[key]
    -- `kept, at, level ...`: see includes/key-records.lua.
    local values
    if not raw then
      values = { 0, now }
      for index = 3, last do values[index] = 0 end
    elseif #raw == length and find(raw, header, 1, true) == 1 then
      values = { unpack_binary(format, raw, values_at) }
    end
    if not values or values[2] > now then
      skipped = skipped or { numbers = numbers, cost = cost }
      place = place + 1
      local next_one = #skipped
      out[place], skipped[next_one + 1], skipped[next_one + 2], skipped[next_one + 3] = '', key, times, place
    else
      local elapsed = now - values[2]
      for index = 3, last do
        -- As `flowed` computes it: to call it here takes Redis a tenth more for a check of 10 limits.
        local flow = elapsed * units[index]
        if flow <= SAFE then
          flow = flow / micros[index]
          flow = flow - flow % 1
        else
          flow = flowed(units[index], micros[index], elapsed)
        end
        local level = values[index]
        level = level > flow and level - flow or 0
        values[index] = level
        -- Rounded down: a fraction of a unit must not be rounded up to one.
        local fitting = (full[index] - level) / each
        if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
      end
      if times == 0 then
        out[place + 1], out[place + 2] = raw and '\0\0\1' or '\0\0\0', raw or ''
      else
        -- When the last bucket is empty, in microseconds from now.
        local lasts, charged = 0, times * each
        for index = 3, last do
          local level = values[index] + charged
          values[index] = level
          local own = level * slowness[index]
          if own > lasts then lasts = own end
        end
        lasts = lasts + 2
        local ms
        if now + lasts > values[1] then
          ms = keep_ms(raw and 2 * lasts < AGAIN and AGAIN or 2 * lasts, slack)
          values[1] = now + (ms - 500) * 1000
        end
        values[2] = now
        local left = pack(format, unpack(values, 1, last))
        out[place + 1], out[place + 2] = times == 1 and '\1\0\4' or pack('<HB', times, 4), left
        if ms or is_needed_later then
          local record = header .. left
          raws[key] = record
          if ms then call('PSETEX', keys[key], ms, record) else call('SETRANGE', keys[key], '0', record) end
        else
          call('SETRANGE', keys[key], offset, left)
        end
      end
      place = place + 2
    end
  end
end
if checks_at and checks_at > size and not skipped and not ARGV[2] then return table.concat(out) end
