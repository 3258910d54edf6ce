-- What folders of GR00T N1.5 and N1.7 share: a vector that goes from its smallest to its largest value, and pictures in
-- the order of their names.
local fields <const> = include "lerobot/groot_fields.lua"
local refuse <const>, single <const> = fields.refuse, fields.single
local vector <const> = {}

-- The vector `feature` of the step `name`, as experiment/steps.lua wants it.
function vector.part(step, name, feature, size)
  local on <const> = step.config.normalize_min_max
  if on ~= nil and type(on) ~= "boolean" then refuse(step, "normalize_min_max", "must be true or false") end
  local stored <const> = given.stored and given.stored[name]
  if on == false or given.bare and not stored then return { key = feature, size = size, mode = "none" } end
  local low <const>, high <const> = stored and stored[feature .. ".min"], stored and stored[feature .. ".max"]
  if not low or not high or #low ~= size or #high ~= size then
    refuse(step, "normalize_min_max", "the step's state_file must have " .. size .. " numbers " .. feature
           .. ".min and " .. feature .. ".max")
  end
  for i = 1, size do
    if low[i] > high[i] then refuse(step, "normalize_min_max", feature .. ".min exceeds .max in entry " .. i) end
  end
  return { key = feature, size = size, mode = "min_max", statistics = { min = low, max = high } }
end

-- 2 (x - min) / (max - min) - 1 as LeRobot computes it, every step in float32; 0 where nothing ever moved. clip: held
-- to -1 .. 1.
function vector.to_model(part, clip)
  if part.mode == "none" then return nil end
  local moving, still, low, width, none = {}, {}, {}, {}, {}
  for i = 1, part.size do
    local least, most = part.statistics.min[i], part.statistics.max[i]
    local to = most > least and moving or still
    to[#to + 1] = i
    if most > least then
      low[#low + 1], width[#width + 1], none[#none + 1] = -least, single(most - least), 0.0
    end
  end
  local ops = {}
  if #moving > 0 then
    ops = { { op = "shift", at = moving, by = low }, { op = "single", at = moving },
            { op = "multiply", at = moving, by = 2.0 },
            { op = "range_to_unit", at = moving, low = none, high = width }, { op = "single", at = moving },
            { op = "shift", at = moving, by = -1.0 } }
    if clip then ops[#ops + 1] = { op = "clamp", at = moving, low = -1.0, high = 1.0 } end
  end
  if #still > 0 then ops[#ops + 1] = { op = "multiply", at = still, by = 0.0 } end
  return ops
end

function vector.by_slot(cameras)
  for i = 2, #cameras do
    local one, k = cameras[i], i - 1
    while k > 0 and one.slot < cameras[k].slot do
      cameras[k + 1] = cameras[k]
      k = k - 1
    end
    cameras[k + 1] = one
  end
end

return vector
