-- Steps of a robot's state and actions from statistics by part, as experiment_cfg/metadata.json has them.
--
-- parts: in the model's order { key, size, mode, statistics, rotation, target, at = the file and the field of the
-- statistics, of which a message is }. mode is sin_cos (of a state), min_max,
-- q99, mean_std, binary or none; target is the form in which the model has a rotation. Where a range has no width
-- min_max gives 0 and q99 leaves x as it is.
local steps <const> = {}

-- name: of the part's statistics.
local function refuse(part, what, name)
  local field <const> = part.at and part.at .. (name and "." .. name or "")
  error((field or "part '" .. part.key .. (name and "', '" .. name or "") .. "'") .. ": " .. what, 0)
end

-- A list of the part's statistics, one number an entry.
local function list(part, name)
  local values = type(part.statistics) == "table" and part.statistics[name]
  if type(values) ~= "table" or #values ~= part.size then
    refuse(part, "must be " .. part.size .. " numbers: the part goes by " .. part.mode, name)
  end
  for i = 1, part.size do
    if math.type(values[i]) == nil then refuse(part, "must be numbers", name) end
  end
  return values
end

local bounds <const> = { min_max = { "min", "max" }, q99 = { "q01", "q99" } }

-- Entries that share a step, with the numbers of each.
local function group() return { at = {}, low = {}, high = {} } end

local function put(g, at, low, high)
  g.at[#g.at + 1], g.low[#g.low + 1], g.high[#g.high + 1] = at, low, high
end

-- Entries by what happens to them.
local function sort_out(parts)
  local g = { range = group(), flat = group(), held = group(), scored = group(), binary = group(), spread = group() }
  local at = 0
  for _, part in ipairs(parts) do
    local names = bounds[part.mode]
    for i = 1, part.size do
      at = at + 1
      if names then
        local low, high = list(part, names[1])[i], list(part, names[2])[i]
        if low > high then
          refuse(part, low .. " of entry " .. i .. " exceeds the " .. high .. " of " .. names[2], names[1])
        end
        if low < high then put(g.range, at, low, high)
        elseif part.mode == "min_max" then put(g.flat, at, low, low)
        else put(g.spread, at, low, low) end
        if part.mode == "q99" then put(g.held, at, -1.0, 1.0) end
      elseif part.mode == "mean_std" then
        local wide = list(part, "std")[i]
        if wide < 0 then refuse(part, "entry " .. i .. " is below 0: " .. wide, "std") end
        put(g.scored, at, list(part, "mean")[i], wide)
      elseif part.mode == "binary" then
        put(g.binary, at, 0.0, 1.0)
      elseif part.mode ~= "none" and part.mode ~= "sin_cos" then
        refuse(part, "mode '" .. tostring(part.mode) .. "' is not known")
      end
    end
  end
  return g
end

local function add(ops, g, op)
  if #g.at > 0 then
    op.at = g.at
    ops[#ops + 1] = op
  end
end

-- x > 0.5 as 0 or 1.
local function add_binary(ops, g)
  add(ops, g, { op = "shift", by = -0.5 })
  add(ops, g, { op = "sign" })
  add(ops, g, { op = "clamp", low = 0.0, high = 1.0 })
end

local function negated(numbers)
  local out = {}
  for i, x in ipairs(numbers) do out[i] = -x end
  return out
end

-- Sines and cosines of the parts that want them: [sin | cos] of all entries of a part.
local function add_waves(ops, parts)
  local order, sines, cosines, at = {}, {}, {}, 0
  for _, part in ipairs(parts) do
    for half = 1, part.mode == "sin_cos" and 2 or 1 do
      for i = 1, part.size do
        order[#order + 1] = at + i
        if part.mode == "sin_cos" then
          local waves = half == 1 and sines or cosines
          waves[#waves + 1] = #order
        end
      end
    end
    at = at + part.size
  end
  if #sines == 0 then return end
  ops[#ops + 1] = { op = "select", at = order }
  ops[#ops + 1] = { op = "sine", at = sines }
  ops[#ops + 1] = { op = "cosine", at = cosines }
end

local turns <const> = {
  quaternion = { size = 4, rotation_6d = { op = "quaternion_6d", size = 6 } },
  euler_angles_rpy = { size = 3, rotation_6d = { op = "rpy_6d", size = 6 } },
  axis_angle = { size = 3, euler_angles_rpy = { op = "axis_angle_rpy", size = 3 } },
}

-- Rotations of a state to the form that the model reads: parts of the sizes that come out.
local function turned(ops, parts)
  local out, order, made, at = {}, {}, {}, 0
  for i, part in ipairs(parts) do
    local from = part.rotation and turns[part.rotation]
    local turn = part.target and from and from[part.target]
    if part.target and (not turn or part.size ~= from.size) then
      refuse(part, "a rotation " .. tostring(part.rotation) .. " of " .. part.size .. " numbers does not become "
             .. part.target)
    end
    local size = turn and turn.size or part.size
    for k = 1, size do
      order[#order + 1] = at + math.min(k, part.size)
      if turn then
        made[turn.op] = made[turn.op] or {}
        table.insert(made[turn.op], #order)
      end
    end
    at = at + part.size
    -- Numbers of a matrix lie in -1 .. 1 already.
    out[i] = turn and { key = part.key, size = size, mode = "none" } or part
  end
  if next(made) then ops[#ops + 1] = { op = "select", at = order } end
  for op, entries in pairs(made) do ops[#ops + 1] = { op = op, at = entries } end
  return out
end

-- Rotations of actions from the model's form back to the robot's.
local function turn_back(ops, parts)
  local at = 0
  for _, part in ipairs(parts) do
    local from = part.target and turns[part.target]
    local turn = from and from[part.rotation]
    if part.target and part.target ~= part.rotation then
      if not turn or part.size ~= from.size or turn.size ~= from.size then
        refuse(part, "a rotation " .. part.target .. " does not become " .. tostring(part.rotation))
      end
      local entries = {}
      for k = 1, part.size do entries[k] = at + k end
      ops[#ops + 1] = { op = turn.op, at = entries }
    end
    at = at + part.size
  end
end

-- What a model reads of a measured state.
function steps.state(measured)
  local ops = {}
  local parts = turned(ops, measured)
  local g = sort_out(parts)
  add(ops, g.range, { op = "range_to_unit", low = g.range.low, high = g.range.high })
  add(ops, g.range, { op = "multiply", by = 2.0 })
  add(ops, g.range, { op = "shift", by = -1.0 })
  add(ops, g.flat, { op = "multiply", by = 0.0 })
  add(ops, g.held, { op = "clamp", low = -1.0, high = 1.0 })
  local moved, scaled, by = group(), group(), {}
  for i, at in ipairs(g.scored.at) do
    if g.scored.high[i] > 0 then
      put(moved, at, g.scored.low[i], 0.0)
      put(scaled, at, 0.0, 0.0)
      by[#by + 1] = 1.0 / g.scored.high[i]
    end
  end
  add(ops, moved, { op = "shift", by = negated(moved.low) })
  add(ops, scaled, { op = "multiply", by = by })
  add_binary(ops, g.binary)
  add_waves(ops, parts)
  return ops
end

-- What a robot is sent of a model's columns.
function steps.actions(parts)
  local ops, g = {}, sort_out(parts)
  add(ops, g.range, { op = "shift", by = 1.0 })
  add(ops, g.range, { op = "multiply", by = 0.5 })
  add(ops, g.range, { op = "unit_to_range", low = g.range.low, high = g.range.high })
  add(ops, g.flat, { op = "multiply", by = 0.0 })
  add(ops, g.flat, { op = "shift", by = g.flat.low })
  add(ops, g.spread, { op = "multiply", by = 0.0 })
  add(ops, g.spread, { op = "shift", by = g.spread.low })
  add(ops, g.scored, { op = "multiply", by = g.scored.high })
  add(ops, g.scored, { op = "shift", by = g.scored.low })
  add_binary(ops, g.binary)
  turn_back(ops, parts)
  return ops
end

-- What a robot's commands are held to: values that training never saw are allowed as far outside of the statistics as
-- those are wide.
function steps.limits(parts)
  local low, high = {}, {}
  for _, part in ipairs(parts) do
    local s = type(part.statistics) == "table" and part.statistics or {}
    local lows, highs = type(s.min) == "table" and s.min or {}, type(s.max) == "table" and s.max or {}
    for i = 1, part.size do
      local least, most = lows[i], highs[i]
      local free = part.mode == "binary" or part.target ~= nil or math.type(least) == nil or math.type(most) == nil
      local width = not free and most - least or 0
      low[#low + 1] = not free and least - width
      high[#high + 1] = not free and most + width
    end
  end
  return { min = low, max = high }
end

return steps
