-- Reservations that expire: a sorted set of holders by expiry, a hash of the charges of each, and in the record the
-- first and the last expiry, so that decisions without reservations cost nothing more.

-- Whether a reservation of the key has expired and must be refunded first.
local function holds_due(key, now)
  local values, layout = load_record(key)
  local at = layout.at[HOLDS]
  return at and values[at + 1] > 0 and values[at + 1] <= now
end

-- Writes the first and the last expiry to the record, 0 for none.
local function write_holds(key, first, last, now)
  load_record(key)
  local values, at = entry_for(key, HOLDS, 2, now)
  values[at + 1], values[at + 2] = tonumber(first or 0), tonumber(last or 0)
  values[at] = values[at + 2]
  changed[key] = true
end

-- Updates the record from the sorted set, which must have a member.
local function note_holds(key, set, now)
  local first = call('ZRANGE', KEYS[set], 0, 0, 'WITHSCORES')
  local last = call('ZREVRANGE', KEYS[set], 0, 0, 'WITHSCORES')
  write_holds(key, first[2], last[2], now)
end

-- Sets whose last member was removed: they no longer exist. While a slot moves to another node, accessing a missing key
-- would abort the script half way, so a set is read before a member is removed.
local emptied = {}

-- Removes a reservation. Returns true when it was still held.
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
