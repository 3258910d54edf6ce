-- Steps of a robot's state and actions from a processor's modalities and statistics: by key min to max (or the 1st to
-- the 99th percentile) to -1 .. 1, mean and deviation, sines and cosines, and actions that are changes of the state.
-- The order of operations and of roundings to float32 is that of the code that the models are trained with.
local columns <const> = {}

local function refuse(where, message) error(where .. ": " .. message, 0) end

local function has(list, key)
  for _, one in ipairs(type(list) == "table" and list or {}) do
    if one == key then return true end
  end
  return false
end

-- A list of something; null in the middle of one, which is nothing here, would make it shorter.
function columns.is_list(value)
  local n = 0
  for _ in pairs(type(value) == "table" and value or {}) do n = n + 1 end
  if n == 0 or n ~= #value then return false end
  for i = 1, n do
    if value[i] == nil then return false end
  end
  return true
end

-- Numbers of the statistics: a list, of which there is perhaps one for each row of a chunk.
local function numbers(where, statistics, name, size)
  local values <const> = type(statistics) == "table" and statistics[name]
  if not columns.is_list(values) then refuse(where .. "." .. name, "must list numbers") end
  local lists <const> = type(values[1]) == "table" and values or { values }
  if not columns.is_list(lists[1]) then refuse(where .. "." .. name, "must list numbers") end
  size = size or #lists[1]
  local out <const> = {}
  for row, list in ipairs(lists) do
    if not columns.is_list(list) or #list ~= size then
      refuse(where .. "." .. name, "must list " .. size .. " numbers" .. (#lists > 1 and " a row" or ""))
    end
    out[row] = {}
    for i, x in ipairs(list) do
      if not math.type(x) then refuse(where .. "." .. name, "must list numbers") end
      out[row][i] = x + 0.0 -- whole numbers would wrap where they are subtracted
    end
  end
  return out
end

-- From low to high, by row: below 2^127 their distance is a float32.
local function bounds(where, own, low_name, high_name)
  local low <const> = numbers(where, own, low_name)
  local high <const> = numbers(where, own, high_name, #low[1])
  for row = 1, math.max(#low, #high) do
    local a <const>, b <const> = low[math.min(row, #low)], high[math.min(row, #high)]
    for i = 1, #a do
      if not (a[i] <= b[i] and math.max(-a[i], b[i]) < 2.0 ^ 127) then
        refuse(where, low_name .. " " .. a[i] .. " must not be above " .. high_name .. " " .. b[i])
      end
    end
  end
  return low, high
end

-- Means and deviations.
local function deviations(where, own, size)
  local mean <const>, std <const> = numbers(where, own, "mean", size), numbers(where, own, "std", size)
  for _, list in ipairs(std) do
    for _, x in ipairs(list) do
      if x < 0 then refuse(where .. ".std", "must not be negative, is " .. x) end
    end
  end
  return mean, std
end

-- numpy's isclose: such a range is none.
local function narrow(low, high) return math.abs(high - low) <= 1e-8 + 1e-5 * math.abs(low) end

-- Entries that share a step, with a number of each.
local function group() return { at = {}, one = {}, two = {} } end
local function put(g, at, one, two)
  g.at[#g.at + 1], g.one[#g.one + 1], g.two[#g.two + 1] = at, one, two
end
local function add(ops, g, op)
  if #g.at > 0 then
    op.at = g.at
    ops[#ops + 1] = op
  end
end

-- How a key of the state is normalised.
local function mode_of(state, key, options)
  if options.sincos and has(state.sin_cos_embedding_keys, key) then return "sin_cos" end
  return has(state.mean_std_embedding_keys, key) and "mean_std" or "range"
end

-- { inputs, ops, normalised, first }: `first` of a key is where its measured entries begin.
function columns.state(state, statistics, options, at)
  local low_name <const>, high_name <const> =
    options.percentiles and "q01" or "min", options.percentiles and "q99" or "max"
  local out = { inputs = {}, ops = {}, normalised = {}, first = {} }
  local range, flat, moved, sines, cosines = group(), group(), group(), group(), group()
  local order, n, raw = {}, 0, 0
  for _, key in ipairs(state.modality_keys) do
    local where <const> = at.statistics .. ".state." .. key
    local own <const> = type(statistics.state) == "table" and statistics.state[key]
    local mode <const> = mode_of(state, key, options)
    local lows <const>, highs <const> = bounds(where, own, low_name, high_name)
    local low <const>, high <const> = lows[1], highs[1]
    local means <const>, stds <const> = deviations(where, own, #low)
    local mean <const>, std <const> = means[1], stds[1]
    out.inputs[#out.inputs + 1] = { input = "state." .. key, size = #low }
    out.first[key] = { at = n, size = #low }
    for half = 1, mode == "sin_cos" and 2 or 1 do
      for i = 1, #low do
        n = n + 1
        order[n] = raw + i
        if mode == "sin_cos" then put(half == 1 and sines or cosines, n, 0.0, 0.0)
        elseif mode == "mean_std" and std[i] ~= 0 then put(moved, n, -mean[i], std[i])
        elseif mode == "range" and narrow(low[i], high[i]) then put(flat, n, 0.0, 0.0)
        elseif mode == "range" then put(range, n, low[i], high[i]) end
      end
    end
    raw = raw + #low
  end
  if n > raw then out.ops[1] = { op = "select", at = order } end
  local zeros <const> = {}
  for i = 1, #moved.at do zeros[i] = 0.0 end
  local ops <const> = out.normalised
  add(ops, range, { op = "range_to_unit", low = range.one, high = range.two })
  add(ops, range, { op = "single" })
  add(ops, range, { op = "multiply", by = 2.0 })
  add(ops, range, { op = "shift", by = -1.0 })
  add(ops, flat, { op = "multiply", by = 0.0 })
  if options.clip then
    add(ops, range, { op = "single" })
    add(ops, range, { op = "clamp", low = -1.0, high = 1.0 })
  end
  add(ops, moved, { op = "shift", by = moved.one })
  add(ops, moved, { op = "range_to_unit", low = zeros, high = moved.two })
  add(ops, sines, { op = "sine" })
  add(ops, cosines, { op = "cosine" })
  return out
end

-- Whether a key's actions are changes of the state, and of which key; `changes` tells of those that stay changes.
local function relation(action, i, key, options, at)
  local configs <const>, all <const> = action.action_configs, at.fields .. ".action.action_configs"
  if configs == nil then return nil end
  if not columns.is_list(configs) or #configs ~= #action.modality_keys then
    refuse(all, "must have one for each of " .. #action.modality_keys .. " modality_keys")
  end
  local c <const>, where <const> = configs[i], all .. "[" .. (i - 1) .. "]"
  if type(c) ~= "table" then refuse(where, "must be fields of one key") end
  if c.rep ~= "RELATIVE" and c.rep ~= "ABSOLUTE" and c.rep ~= "DELTA" then
    refuse(where .. ".rep", "must be RELATIVE, ABSOLUTE or DELTA, is " .. tostring(c.rep))
  end
  if c.rep ~= "RELATIVE" or not options.relative then return nil, c.rep == "DELTA" end
  if c.type ~= "NON_EEF" or c.format ~= "DEFAULT" then
    refuse(where .. (c.type ~= "NON_EEF" and ".type" or ".format"),
           "poses that are relative to a pose are not supported; joints are: NON_EEF, DEFAULT")
  end
  local of <const> = type(c.state_key) == "string" and c.state_key or key
  return of, false, where
end

-- The numbers of one step for all columns of all keys: of each row where some key has rows of its own.
local function spread(parts, name)
  local rows, lists = 1, {}
  for _, part in ipairs(parts) do rows = math.max(rows, #part[name]) end
  for row = 1, rows do
    lists[row] = {}
    for _, part in ipairs(parts) do
      for _, x in ipairs(part[name][math.min(row, #part[name])]) do lists[row][#lists[row] + 1] = x end
    end
  end
  return rows > 1 and lists or lists[1]
end

local function width_of(low, high)
  local out = {}
  for row = 1, math.max(#low, #high) do
    local a <const>, b <const> = low[math.min(row, #low)], high[math.min(row, #high)]
    out[row] = {}
    for i = 1, #a do out[row][i] = b[i] - a[i] end
  end
  return out
end

-- Means and deviations, by row; where nothing ever deviated a value stays as it is.
local function unscored(mean, std)
  local low, width = {}, {}
  for row = 1, math.max(#mean, #std) do
    local m <const>, s <const> = mean[math.min(row, #mean)], std[math.min(row, #std)]
    low[row], width[row] = {}, {}
    for i = 1, #s do
      low[row][i], width[row][i] = s[i] == 0 and 0.0 or m[i], s[i] == 0 and 1.0 or s[i]
    end
  end
  return low, width
end

-- What commands are held to: as far outside of the statistics of all rows as those are wide. Changes are places once
-- the state is added, and have no bounds of their own.
local function bound(limits, part)
  for i = 1, part.size do
    local least, most = part.low[1][i], part.high[1][i]
    for _, list in ipairs(part.low) do least = math.min(least, list[i]) end
    for _, list in ipairs(part.high) do most = math.max(most, list[i]) end
    local free <const> = part.of ~= nil or part.scored
    limits.min[#limits.min + 1] = not free and least - (most - least)
    limits.max[#limits.max + 1] = not free and most + (most - least)
  end
end

-- One key of the actions.
local function part_of(action, i, key, statistics, options, at, measured, rows)
  local of <const>, changes <const>, where <const> = relation(action, i, key, options, at)
  local from <const> = of and "relative_action" or "action"
  local own <const> = type(statistics[from]) == "table" and statistics[from][key]
  local place <const> = at.statistics .. "." .. from .. "." .. key
  local percent <const> = options.percentiles and not of
  local low <const>, high <const> = bounds(place, own, percent and "q01" or "min", percent and "q99" or "max")
  local part <const> = { key = key, size = #low[1], of = of, changes = changes, at = place,
                         scored = has(action.mean_std_embedding_keys, key) }
  part.low, part.high = low, high
  if part.scored then
    part.low, part.width = unscored(deviations(place, own, part.size))
  else
    part.width = width_of(part.low, part.high)
  end
  for _, name in ipairs { "low", "width" } do
    if #part[name] > 1 and #part[name] < rows then
      refuse(place, "has numbers for " .. #part[name] .. " rows of " .. rows)
    end
  end
  if of then
    local state <const> = measured.first[of]
    if not state then refuse(where, "the state has no '" .. of .. "'") end
    if state.size ~= part.size then
      refuse(where, "'" .. of .. "' of the state has " .. state.size .. " entries, the action " .. part.size)
    end
    part.first = state.at
  end
  return part
end

-- { size, ops, outputs, limits, changes }
function columns.actions(action, statistics, options, at, measured)
  local out = { size = 0, ops = {}, outputs = {}, limits = { min = {}, max = {} }, changes = nil }
  local parts, ranged, scored, adds = {}, group(), group(), group()
  for i, key in ipairs(action.modality_keys) do
    local part <const> = part_of(action, i, key, statistics, options, at, measured, #action.delta_indices)
    parts[i] = part
    bound(out.limits, part)
    out.changes = out.changes or part.changes or nil
    out.outputs[i] = { name = key, size = part.size }
    for k = 1, part.size do
      out.size = out.size + 1
      put(part.scored and scored or ranged, out.size, 0.0, 0.0)
      if part.of then put(adds, out.size, part.first + k, 0.0) end
    end
  end
  add(out.ops, ranged, { op = "clamp", low = -1.0, high = 1.0 })
  add(out.ops, ranged, { op = "shift", by = 1.0 })
  add(out.ops, ranged, { op = "single" })
  add(out.ops, ranged, { op = "multiply", by = 0.5 })
  out.ops[#out.ops + 1] = { op = "multiply", by = spread(parts, "width") }
  out.ops[#out.ops + 1] = { op = "shift", by = spread(parts, "low") }
  add(out.ops, scored, { op = "single" })
  add(out.ops, adds, { op = "add_state", of = adds.one })
  return out
end

return columns
