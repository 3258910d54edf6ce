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

-- Numbers of the statistics: a list, of which there is perhaps one for each row of a chunk.
local function numbers(where, statistics, name, size)
  local values <const> = type(statistics) == "table" and statistics[name]
  if type(values) ~= "table" or #values == 0 then refuse(where .. "." .. name, "must list numbers") end
  local lists <const> = type(values[1]) == "table" and values or { values }
  size = size or #lists[1]
  for _, list in ipairs(lists) do
    if type(list) ~= "table" or #list ~= size then
      refuse(where .. "." .. name, "must list " .. size .. " numbers" .. (#lists > 1 and " a row" or ""))
    end
    for _, x in ipairs(list) do
      if not math.type(x) then refuse(where .. "." .. name, "must list numbers") end
    end
  end
  return lists
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
    local low <const> = numbers(where, own, low_name)[1]
    local high <const> = numbers(where, own, high_name, #low)[1]
    local mean <const>, std <const> = numbers(where, own, "mean", #low)[1], numbers(where, own, "std", #low)[1]
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
  local configs <const> = action.action_configs
  local c <const> = type(configs) == "table" and configs[i]
  if type(c) ~= "table" then return nil end
  local where <const> = at.fields .. ".action.action_configs[" .. (i - 1) .. "]"
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

-- Means and deviations; where nothing ever deviated a value stays as it is.
local function unscored(mean, std)
  for row, list in ipairs(std) do
    for i, x in ipairs(list) do
      if x == 0 then list[i], mean[math.min(row, #mean)][i] = 1.0, 0.0 end
    end
  end
  return mean, std
end

-- What commands are held to: as far outside of the statistics as those are wide. Changes are places once the state is
-- added, and have no bounds of their own.
local function bound(limits, part)
  for i = 1, part.size do
    local least, most = part.low[1][i], part.high[1][i]
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
  local low <const> = numbers(place, own, percent and "q01" or "min")
  local part <const> = { key = key, size = #low[1], of = of, changes = changes, at = place,
                         scored = has(action.mean_std_embedding_keys, key) }
  part.low, part.high = low, numbers(place, own, percent and "q99" or "max", part.size)
  if part.scored then
    part.low, part.width = unscored(numbers(place, own, "mean", part.size), numbers(place, own, "std", part.size))
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
