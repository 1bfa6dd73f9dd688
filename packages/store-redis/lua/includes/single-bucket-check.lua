-- The fastest path: a call with one check of one key by one bucket, over a record with that bucket and nothing else. It
-- is what a process with little traffic sends. It creates no function and no table, and has arguments of its own, which
-- one `unpack` reads. Everything else goes on in includes/single-limit-checks.lua, which says what is skipped and has
-- the same arithmetic.
--
-- ARGV  [1] `now d, slack d, cost d, times H`, then the limit: the header of such a record `c13`, `limit d, units d,
--           micros d`, and what only other paths need: `block c8, lease c8, capacity d`

-- No other call has this length: it is too long for one without limits, and too short for one with a limit.
if #ARGV[1] == 87 then
  local call, pack, unpack_binary, argument, key = redis.call, struct.pack, struct.unpack, ARGV[1], KEYS[1]
  local given, slack, cost, wanted, header, most, units, micros = unpack_binary('<dddHc13ddd', argument)
  local now, times = given, wanted
  if now == 0 then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  -- Not MGET, which returns a table. GET of another type is an error, which is a table without elements.
  local raw = redis.pcall('GET', key)
  local own, kept, at, used = header, 0, now, 0
  if raw then
    own = nil
    if #raw == 37 then own, kept, at, used = unpack_binary('<c13ddd', raw) end
  end
  local flow = (now - at) * units
  if own == header and flow >= 0 and flow <= 9007199254740991 then
    flow = flow / micros
    flow = flow - flow % 1
    used = used > flow and used - flow or 0
    cost = cost * 1000000
    local fitting = (most - used) / cost
    if fitting < times then times = fitting < 1 and 0 or fitting - fitting % 1 end
    if times > 0 then
      used = used + times * cost
      local lasts = used * (micros / units) + 2
      if now + lasts > kept then
        -- The same as `keep_ms` of includes/call-header.lua.
        local ms = (raw and 2 * lasts < 8000000 and 8000000 or 2 * lasts) / 1000 + 1000 + slack
        local _, exponent = math.frexp(ms)
        local rounded = 2 ^ exponent
        if ms <= rounded * 0.75 then rounded = rounded * 0.75 end
        if rounded > 315360000000 then rounded = 315360000000 end
        call('PSETEX', key, rounded, pack('<c13ddd', header, now + (rounded - 500) * 1000, now, used))
      else
        -- Only the last two values change.
        call('SETRANGE', key, '21', pack('<dd', now, used))
      end
    end
    return raw and pack('<dHBc0', now, times, 1, raw) or pack('<dHB', now, times, 0)
  end
  -- The same call with the arguments that the other paths read.
  local block, lease, capacity = unpack_binary('<c8c8d', argument, 64)
  ARGV[1] = pack('<ddHHBc8c8c8dddddddddBHdHHHH', given, slack, 1, 1, 1, string.sub(header, 4, 11), block, lease,
    capacity, most, 0, 0, 0, units, micros, 0, capacity, 0, 1, cost, 1, 1, 1, wanted)
end
