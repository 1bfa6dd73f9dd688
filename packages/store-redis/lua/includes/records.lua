-- One record per key holds all its small states: `version B, entries H, {tag c8, size H}*`, then for each entry `fresh
-- d, value d*`. From the time `fresh` on, the entry means the same as no entry. Entries of other limits are kept until
-- then.
--
-- A record of buckets only, all updated at one time, has a short form: version 2, the same header, then `kept d, at d`
-- and `level d*`. `kept` is the earliest expiry of the key; it replaces `fresh` of every entry.

local EMPTY_HEADER = '\1\0\0'
local HOLDS = '\0\0\0holds'

local layouts = {}

-- The positions of the entries of a record, from its header. `at[tag]` is that of `fresh`; value i is at at[tag] + i.
local function layout_of(header)
  local layout = layouts[header]
  if layout then return layout end
  local tags, at, sizes, total = {}, {}, {}, 0
  for entry = 1, (#header - 3) / 10 do
    local tag, size = unpack_binary('<c8H', header, 10 * entry - 6)
    tags[entry], at[tag], sizes[tag] = tag, total + 1, size
    total = total + 1 + size
  end
  layout = { header = header, tags = tags, at = at, sizes = sizes, total = total, format = '<' .. string.rep('d', total) }
  layout.write = '<c' .. #header .. string.rep('d', total)
  layouts[header] = layout
  return layout
end

-- The layout of a single bucket, by the header of its short form.
local level_layouts = {}

local function layout_of_level(header)
  local layout = level_layouts[header]
  if not layout then
    layout = layout_of('\1' .. string.sub(header, 2))
    layout.shared = header
    level_layouts[header] = layout
  end
  return layout
end

-- Records of this call by the index of their key: values, layout, earliest expiry, and whether to write them.
local values_of, layout_at, kept_of, changed = {}, {}, {}, {}

-- Keys whose only entry, if there is no other, is a bucket.
local is_level = {}

local function last_fresh(values, layout)
  if #layout.tags == 1 then return values[1] end
  local last = 0
  for _, place in pairs(layout.at) do
    if values[place] > last then last = values[place] end
  end
  return last
end

-- Converts a record from the short form to the general one.
local function general_form(raw)
  local count = unpack_binary('<H', raw, 2)
  local size = 3 + 10 * count
  local kept, at, after = unpack_binary('<dd', raw, size + 1)
  local parts = { string.char(VERSION), string.sub(raw, 2, size) }
  for place = after, #raw, 8 do parts[#parts + 1] = pack('<d', kept) .. string.sub(raw, place, place + 7) .. pack('<d', at) end
  return table.concat(parts)
end

local function load_record(key)
  local values = values_of[key]
  if values then return values, layout_at[key] end
  local raw = raws[key]
  local layout
  local version = raw and string.byte(raw, 1)
  if version == SHARED and #raw == 37 then
    -- A single bucket, the most frequent case.
    local header, kept, at, level = unpack_binary('<c13ddd', raw)
    layout, values = layout_of_level(header), { kept, level, at }
  elseif version == SHARED or version == VERSION then
    if version == SHARED then raw = general_form(raw) end
    layout = layout_of(string.sub(raw, 1, 3 + 10 * unpack_binary('<H', raw, 2)))
    values = { unpack_binary(layout.format, raw, #layout.header + 1) }
  else
    layout = layout_of(EMPTY_HEADER)
    values = {}
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

local function save_records(now, slack)
  for key in pairs(changed) do
    local values, layout = values_of[key], layout_at[key]
    local fresh = last_fresh(values, layout)
    if fresh <= now then
      call('DEL', KEYS[key])
    else
      local record
      if is_level[key] and layout.total == 3 then
        layout.shared = layout.shared or '\2' .. string.sub(layout.header, 2)
        record = pack('<c13ddd', layout.shared, values[1], values[3], values[2])
      else
        record = pack(layout.write, layout.header, unpack(values, 1, layout.total))
      end
      local raw = raws[key]
      -- A key of the same length with a late enough expiry is updated in place, at a third of the cost.
      if raw and #raw == #record and fresh <= kept_of[key] then
        call('SETRANGE', KEYS[key], '0', record)
      else
        call('PSETEX', KEYS[key], keep_for(fresh - now, slack), record)
      end
    end
  end
end
