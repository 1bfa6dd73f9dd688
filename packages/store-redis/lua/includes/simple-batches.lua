-- Batches of buckets and simple windows that charge, over records without blocks, leases and reservations: most of what
-- checks several keys. The decisions are those of includes/general-batches.lua, without a table per item.

-- The state of each item of the current batch at `now`: the position of its entry, false when there is none; for a
-- bucket `since, level`, for a fixed window `start, used, end`, for a sliding counter `start, current, previous`.
local places, starts, amounts, thirds = {}, {}, {}, {}

-- Decides a batch of `count` items in `fields` (`limit, key, long, holds, cost` of each), `times` times, and appends
-- the reply to `out`. For a key of a bulk check, `rest` is the header of a record with these limits and nothing else,
-- without its first byte. Returns false, without effect, when the batch is not simple.
--
-- Invariant: all items are read before any is charged, and nothing is charged unless all fit.
local function decide_simple_batch(fields, count, times, rest)
  local is_known = true
  for index = 1, count do
    local field = 5 * index
    local limit, key, cost = limits[fields[field - 4]], fields[field - 3], fields[field]
    if not limit.is_simple or cost == 0 then return false end
    local values, layout = values_of[key], layout_at[key]
    if not values then values, layout = load_record(key) end
    local at, kind, tag = layout.at, limit.kind, limit.tag
    if at[HOLDS] or at[limit.block] or at[limit.lease] then return false end
    local place, left = at[tag], nil
    if place and layout.sizes[tag] ~= limit.size then return false end
    places[index] = place or false
    if not place then is_known = false end
    if kind == METER then
      local level, since = level_at(values, place, limit, now)
      starts[index], amounts[index] = since, level
      left = floor((limit.limit - level) / UNIT)
    elseif kind == FIXED then
      local start, finish, used = fixed_at(values, place, limit, now)
      starts[index], amounts[index], thirds[index] = start, used, finish
      left = limit.limit - used
    else
      local start, previous, current = counts_at(values, place, limit, now)
      starts[index], amounts[index], thirds[index] = start, current, previous
      left = counter_left(limit, now, start, previous, current)
    end
    if left < times * cost then times = left < cost and 0 or floor(left / cost) end
  end
  local last, key = #out, fields[2]
  if rest and raws[key] and layout_at[key].rest == rest and not changed[key] then
    out[last + 1], out[last + 2] = pack('<HB', times, 1), raws[key]
  else
    last = last + 1
    out[last] = rest and pack('<HBH', 0, 3, times) or pack('<H', times)
    for index = 1, count do
      local place, values = places[index], values_of[fields[5 * index - 3]]
      if not place then
        out[last + index] = '\0'
      elseif limits[fields[5 * index - 4]].size == 3 then
        out[last + index] = pack('<Bddd', 1, values[place + 1], values[place + 2], values[place + 3])
      else
        out[last + index] = pack('<Bdd', 1, values[place + 1], values[place + 2])
      end
    end
  end
  if times == 0 then return true end
  for index = 1, count do
    local field = 5 * index
    local limit, key, units = limits[fields[field - 4]], fields[field - 3], times * fields[field]
    local values, place = values_of[key], places[index]
    -- A new entry may move others of the same record.
    if not is_known then values, place = entry_for(key, limit.tag, limit.size, now) end
    local kind, start = limit.kind, starts[index]
    if kind == METER then
      local level, known = amounts[index] + units * UNIT, values[place]
      values[place + 1], values[place + 2] = level, start
      is_bucket[limit.tag] = true
      local fresh = start + time_to_flow(limit.units, limit.micros, level)
      -- Kept longer than needed, except for a new one, so that most writes need not extend the expiry.
      if not known then
        values[place] = fresh
      elseif fresh > known then
        local twice = 2 * (fresh - now)
        values[place] = now + (keep_ms(twice < AGAIN and AGAIN or twice, slack) - 500) * 1000
      end
    elseif kind == FIXED then
      values[place], values[place + 1], values[place + 2] = thirds[index], start, amounts[index] + units
    else
      values[place], values[place + 1] = start + 2 * limit.window, start
      values[place + 2], values[place + 3] = thirds[index], amounts[index] + units
    end
    changed[key] = true
  end
  return true
end
