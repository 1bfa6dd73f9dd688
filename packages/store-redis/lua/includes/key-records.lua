-- One record per key holds all its small states: `version B, entries H, {tag c8, size H}*`, then for each entry `fresh
-- d, value d*`. From the time `fresh` on, the entry means the same as no entry. Entries of other limits are kept until
-- then.
--
-- A record of buckets only, all updated at one time, has a short form: version 2, the same header, then `kept d, at d`
-- and `level d*`. `kept` replaces `fresh` of every entry, and is before the expiry of the key.

local EMPTY_HEADER = '\1\0\0'
local HOLDS = '\0\0\0holds'

local layouts = {}

-- The positions of the entries of a record, from its header in either form. `at[tag]` is that of `fresh`; value i is at
-- at[tag] + i. `rest` is the header without its first byte, which tells the form.
local function layout_of(header)
  local layout = layouts[header]
  if layout then return layout end
  local tags, at, sizes, total = {}, {}, {}, 0
  for entry = 1, (#header - 3) / 10 do
    local tag, size = unpack_binary('<c8H', header, 10 * entry - 6)
    tags[entry], at[tag], sizes[tag] = tag, total + 1, size
    total = total + 1 + size
  end
  layout = {
    rest = string.sub(header, 2), tags = tags, at = at, sizes = sizes, total = total,
    format = '<' .. string.rep('d', total),
  }
  layouts[header] = layout
  return layout
end

-- Records of this call by the index of their key: values, layout, earliest expiry, and whether to write them.
local values_of, layout_at, kept_of, changed = {}, {}, {}, {}

-- Tags of entries that are buckets, as far as known: those that were charged in this call.
local is_bucket = {}

-- When the last entry is fresh.
local function last_fresh(values, layout)
  local tags, at, last = layout.tags, layout.at, 0
  for entry = 1, #tags do
    local fresh = values[at[tags[entry]]]
    if fresh > last then last = fresh end
  end
  return last
end

-- The values and the layout of a record, both in the general form. Anything that is not a record counts as empty.
local function load_record(key)
  local values = values_of[key]
  if values then return values, layout_at[key] end
  local raw = raws[key]
  local layout
  local version = raw and string.byte(raw, 1)
  if version == VERSION or version == SHARED then
    local entries = unpack_binary('<H', raw, 2)
    layout = layout_of(string.sub(raw, 1, 3 + 10 * entries))
    local first = 4 + 10 * entries
    if version == VERSION then
      values = { unpack_binary(layout.format, raw, first) }
    elseif entries == 1 then
      local kept, at, level = unpack_binary('<ddd', raw, first)
      values = { kept, level, at }
    else
      local short = { unpack_binary('<' .. string.rep('d', entries + 2), raw, first) }
      values = {}
      for entry = 1, entries do
        local place = 3 * entry
        values[place - 2], values[place - 1], values[place] = short[1], short[entry + 2], short[2]
      end
    end
  else
    layout, values = layout_of(EMPTY_HEADER), {}
  end
  kept_of[key] = last_fresh(values, layout)
  values_of[key], layout_at[key] = values, layout
  return values, layout
end

-- Entries are kept for so much longer, like keys: after a failover, the clock of the new primary may be behind.
local GRACE = 1000000

-- Rebuilds a record without the entries in `dropped` and expired ones, except open reservations; with an entry of
-- `size` values for `tag` at its end, if one is given. Returns the values and the position of that entry.
local function rebuild(key, dropped, now, tag, size)
  local values, layout = values_of[key], layout_at[key]
  local kept, parts, count = {}, {}, 0
  for _, other in ipairs(layout.tags) do
    local at = layout.at[other]
    if not dropped[other] and (values[at] + GRACE > now or (other == HOLDS and values[at + 1] > 0)) then
      for index = at, at + layout.sizes[other] do kept[#kept + 1] = values[index] end
      count = count + 1
      parts[count] = pack('<c8H', other, layout.sizes[other])
    end
  end
  local place = #kept + 1
  if tag then
    count = count + 1
    parts[count] = pack('<c8H', tag, size)
  end
  values_of[key], layout_at[key] = kept, layout_of(pack('<BH', VERSION, count) .. table.concat(parts))
  return kept, place
end

-- The position of a new entry of `size` values, which replaces any other with its tag.
local function place_entry(key, tag, size, now)
  return rebuild(key, { [tag] = true }, now, tag, size)
end

-- The position of an entry of exactly `size` values, created when there is none.
local function entry_for(key, tag, size, now)
  local values, layout = values_of[key], layout_at[key]
  local place = layout.at[tag]
  if place and layout.sizes[tag] == size then return values, place end
  return place_entry(key, tag, size, now)
end

-- The short form of a record; nil when not all entries are known to be buckets that were updated at the same time.
local function short_form(values, layout, fresh)
  local tags = layout.tags
  if not is_bucket[tags[1]] then return nil end
  local at, levels = values[3], {}
  for entry = 1, #tags do
    if not is_bucket[tags[entry]] or values[3 * entry] ~= at then return nil end
    levels[entry] = values[3 * entry - 1]
  end
  return '\2' .. layout.rest .. pack('<' .. string.rep('d', #tags + 2), fresh, at, unpack(levels, 1, #tags))
end

-- Stores the records that have changed.
local function save_records(now, slack)
  for key in pairs(changed) do
    local values, layout = values_of[key], layout_at[key]
    local fresh = last_fresh(values, layout)
    if fresh <= now then
      call('DEL', KEYS[key])
    else
      local record = short_form(values, layout, fresh)
        or '\1' .. layout.rest .. pack(layout.format, unpack(values, 1, layout.total))
      local raw = raws[key]
      -- A key of the same length with a late enough expiry is updated in place, at a third of the cost.
      if raw and #raw == #record and fresh <= kept_of[key] then
        call('SETRANGE', KEYS[key], '0', record)
      else
        call('PSETEX', KEYS[key], keep_ms(fresh - now, slack), record)
      end
    end
  end
end
