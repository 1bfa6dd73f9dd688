-- Leased units, in the record: [holder, units, ends at, ...] under a separate tag.

-- How long a charge on a limit can matter. The entry is kept so long after a lease has ended, because it is charged
-- only at the next check.
local function lasting(limit)
  if limit.kind == METER then return time_to_flow(limit.units, limit.micros, limit.limit) end
  if limit.edges then return limit.edges[#limit.edges] - limit.edges[1] end
  return 2 * limit.window
end

-- Replaces the list of leases.
local function write_leases(item, leases, now)
  local fresh = 0
  for lease = 3, #leases, 3 do fresh = max(fresh, leases[lease]) end
  local values, at = place_entry(item.key, item.limit.lease, #leases, now)
  values[at] = fresh > 0 and fresh + lasting(item.limit) or 0
  for index = 1, #leases do values[at + index] = leases[index] end
  keep_beside_leases(item)
  changed[item.key] = true
end

-- Charges leases that have ended, in full and as of their end. Returns the units still leased, and when the first lease
-- ends.
local function leased_units(item, now)
  local values, layout = load_record(item.key)
  local tag = item.limit.lease
  local at = layout.at[tag]
  if not at then return 0, 0 end
  local size = layout.sizes[tag]
  local out, soonest, ended, live = 0, 0, {}, {}
  for lease = at + 1, at + size, 3 do
    local ends = values[lease + 2]
    if ends <= now then
      ended[#ended + 1] = { ends = ends, units = values[lease + 1] }
    else
      out = out + values[lease + 1]
      soonest = soonest == 0 and ends or min(soonest, ends)
      for part = 0, 2 do live[#live + 1] = values[lease + part] end
    end
  end
  if #ended == 0 then return out, soonest end
  table.sort(ended, function(one, other) return one.ends < other.ends end)
  -- As of the first end: what was fresh only later is needed for what follows.
  write_leases(item, live, ended[1].ends)
  for _, lease in ipairs(ended) do
    correct(item, lease.ends, lease.units, { at = lease.ends, cost = lease.units, mark = 0, holder = 0 })
  end
  return out, soonest
end

local function add_lease(item, holder, units, ends, now)
  local values, layout = load_record(item.key)
  local at, leases = layout.at[item.limit.lease], {}
  if at then
    for index = at + 1, at + layout.sizes[item.limit.lease] do leases[#leases + 1] = values[index] end
  end
  leases[#leases + 1] = holder
  leases[#leases + 1] = units
  leases[#leases + 1] = ends
  write_leases(item, leases, now)
end

-- Removes a lease. Returns false when there is none: it has ended, or was never stored.
local function strike_lease(item, holder, now)
  local values, layout = load_record(item.key)
  local tag = item.limit.lease
  local at = layout.at[tag]
  if not at then return false end
  local others, found = {}, false
  for lease = at + 1, at + layout.sizes[tag], 3 do
    if values[lease] == holder then
      found = true
    else
      for part = 0, 2 do others[#others + 1] = values[lease + part] end
    end
  end
  if found then write_leases(item, others, now) end
  return found
end
