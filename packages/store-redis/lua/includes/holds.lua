-- Reservations that give themselves back: a sorted set of holders by their end, a hash of what each was charged, and in the
-- subject's record when the first and the last of them end, so that a decision without any pays nothing for them.

-- Whether a reservation of the subject has run out and must be given back before anything else.
local function holds_due(key, now)
  local values, layout = load_record(key)
  local at = layout.at[HOLDS]
  return at and values[at + 1] > 0 and values[at + 1] <= now
end

-- Notes in the record when the first and the last reservation end, 0 for none.
local function write_holds(key, first, last, now)
  load_record(key)
  local values, at = entry_for(key, HOLDS, 2, now)
  values[at + 1], values[at + 2] = tonumber(first or 0), tonumber(last or 0)
  values[at] = values[at + 2]
  changed[key] = true
end

-- Notes in the record what the sorted set says, which must have a member.
local function note_holds(key, set, now)
  local first = call('ZRANGE', KEYS[set], 0, 0, 'WITHSCORES')
  local last = call('ZREVRANGE', KEYS[set], 0, 0, 'WITHSCORES')
  write_holds(key, first[2], last[2], now)
end

-- Sets whose last member was struck off: they exist no more. While its slot moves to another node, touching a key that is
-- gone would end the script half way, so all that is asked of a set is asked before a member is struck off.
local emptied = {}

-- Strikes a reservation off. True when it was still held.
local function strike_hold(key, set, name, now)
  if emptied[set] then return false end
  local first = call('ZRANGE', KEYS[set], 0, 1, 'WITHSCORES')
  local last = call('ZREVRANGE', KEYS[set], 0, 1, 'WITHSCORES')
  call('HDEL', KEYS[set + 1], name)
  if call('ZREM', KEYS[set], name) == 0 then
    write_holds(key, first[2], last[2], now)
    return false
  end
  emptied[set] = #first == 2
  write_holds(key, first[first[1] == name and 4 or 2], last[last[1] == name and 4 or 2], now)
  return true
end
