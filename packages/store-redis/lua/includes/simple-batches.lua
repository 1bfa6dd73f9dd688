-- The fast path for general batches of buckets and simple windows that charge, over records without blocks, leases and
-- reservations. The decisions are those of the general path, without a table per item.

local places = {}

-- Decides a batch of `count` items in `fields`, `times` times. Returns false, without effect, when the batch is not
-- simple.
local function decide_simple_batch(fields, count, times)
  for index = 1, count do
    local field = 5 * index
    local limit, key, cost = limits[fields[field - 4]], fields[field - 3], fields[field]
    local kind = limit.kind
    if kind > COUNTER or kind == QUEUE or limit.extra > 0 or limit.edges or limit.capacity <= 0 or cost == 0 then return false end
    local values, layout = values_of[key], layout_at[key]
    if not values then values, layout = load_record(key) end
    local at = layout.at
    if at[HOLDS] or at[limit.block] or at[limit.lease] then return false end
    local place = at[limit.tag]
    if place and layout.sizes[limit.tag] ~= (kind == COUNTER and 3 or 2) then return false end
    places[index] = place or false
    local fitting
    if kind == METER then
      local level, since = 0, now
      if place then
        level, since = values[place + 1], values[place + 2]
        if since < now then
          local flow = (now - since) * limit.units
          if flow <= SAFE then
            flow = flow / limit.micros
            flow = flow - flow % 1
          else
            flow = flowed(limit.units, limit.micros, now - since)
          end
          level = level > flow and level - flow or 0
          since = now
        end
      end
      amounts[index], instants[index] = level, since
      fitting = (limit.limit - level) / (cost * UNIT)
    elseif kind == FIXED then
      local start, used = 0, 0
      if place then start, used = values[place + 1], values[place + 2] end
      local window = limit.window
      local opened = start > now and start - start % window or now - now % window
      if start < opened then used = 0 end
      amounts[index], instants[index] = used, opened
      fitting = (limit.limit - used) / cost
    else
      local start, previous, current = counts_at(values, place, limit, now)
      local elapsed = now > start and now - start or 0
      amounts[index], instants[index], earlier[index] = current, start, previous
      fitting = (limit.limit - ceil(previous * (limit.window - elapsed) / limit.window) - current) / cost
    end
    if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
  end
  local last = #out + 1
  out[last] = pack('<H', times)
  for index = 1, count do
    local place, values = places[index], values_of[fields[5 * index - 3]]
    if not place then
      out[last + index] = '\0'
    elseif limits[fields[5 * index - 4]].kind == COUNTER then
      out[last + index] = pack('<Bddd', 1, values[place + 1], values[place + 2], values[place + 3])
    else
      out[last + index] = pack('<Bdd', 1, values[place + 1], values[place + 2])
    end
  end
  if times == 0 then return true end
  for index = 1, count do
    local field = 5 * index
    local limit, key, units = limits[fields[field - 4]], fields[field - 3], times * fields[field]
    local kind = limit.kind
    local values, place = entry_for(key, limit.tag, kind == COUNTER and 3 or 2, now)
    local instant, fresh = instants[index], nil
    if kind == METER then
      local level = amounts[index] + units * UNIT
      values[place + 1], values[place + 2] = level, instant
      is_level[key] = true
      local lasts = level / limit.units * limit.micros + 2
      fresh = instant + lasts
      -- A new one has none yet. Others are kept longer than they must be, so that most writes need not see to that.
      local known = values[place]
      if not known then
        values[place] = fresh
      elseif fresh > known then
        values[place] = now + keep_micros(2 * lasts < AGAIN and AGAIN or 2 * lasts, slack)
      end
    elseif kind == FIXED then
      values[place], values[place + 1], values[place + 2] = instant + limit.window, instant, amounts[index] + units
    else
      values[place], values[place + 1] = instant + 2 * limit.window, instant
      values[place + 2], values[place + 3] = earlier[index], amounts[index] + units
    end
    changed[key] = true
  end
  return true
end
