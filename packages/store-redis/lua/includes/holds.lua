-- Reservations that give themselves back: a sorted set of holders by their end, a hash of what each was charged, and in the
-- subject's record when the first and the last of them end, so that a decision without any pays nothing for them.

-- Whether a reservation of the subject has run out and must be given back before anything else.
local function holds_due(key, now)
  local values, layout = load_record(key)
  local at = layout.at[HOLDS]
  return at and values[at + 1] > 0 and values[at + 1] <= now
end

-- Notes in the record what the sorted set says.
local function note_holds(key, set, now)
  load_record(key)
  local first = call('ZRANGE', KEYS[set], 0, 0, 'WITHSCORES')
  local last = call('ZREVRANGE', KEYS[set], 0, 0, 'WITHSCORES')
  local values, at = entry_for(key, HOLDS, 2, now)
  values[at + 1], values[at + 2] = tonumber(first[2] or 0), tonumber(last[2] or 0)
  values[at] = values[at + 2]
  changed[key] = true
end
