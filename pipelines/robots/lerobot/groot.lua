-- GR00T N1.5: one step of each processor packs and normalises. State and actions are one vector each, from their
-- smallest to their largest value; pictures stand in the order of their names.
local steps <const> = include "experiment/steps.lua"

-- Numbers of the kinds of robots that the model's description has, too.
local published <const> = { new_embodiment = 31, oxe_droid = 17, agibot_genie1 = 26, gr1 = 24, so100 = 2,
                            unitree_g1 = 3 }
local PACKS <const>, UNPACKS <const> = "groot_pack_inputs_v3", "groot_action_unpack_unnormalize_v1"

-- Rows of the chat around the task, and of the task.
local MOST <const> = 256

local function refuse(step, field, what) error(step.at .. "." .. field .. ": " .. what, 0) end

-- The vector `feature` of a step, as steps.lua wants it.
local function part(step, name, feature, size)
  local on <const> = step.config.normalize_min_max
  if on ~= nil and type(on) ~= "boolean" then refuse(step, "normalize_min_max", "must be true or false") end
  if on == false then return { key = feature, size = size, mode = "none" } end
  local stored <const> = given.stored and given.stored[name] or {}
  local low <const>, high <const> = stored[feature .. ".min"], stored[feature .. ".max"]
  if not low or not high or #low ~= size or #high ~= size then
    refuse(step, "normalize_min_max", "the step's state_file must have " .. size .. " numbers " .. feature
           .. ".min and " .. feature .. ".max")
  end
  for i = 1, size do
    if low[i] > high[i] then refuse(step, "normalize_min_max", feature .. ".min exceeds .max in entry " .. i) end
  end
  return { key = feature, size = size, mode = "min_max", statistics = { min = low, max = high } }
end

-- The float32 number nearest to x, by Veltkamp's splitting.
local function single(x)
  local far <const> = x * 536870913.0 -- 2^29 + 1
  return far - (far - x)
end

-- 2 (x - min) / (max - min) - 1 as LeRobot computes it, every step in float32; 0 where nothing ever moved.
local function to_model(vector)
  if vector.mode == "none" then return nil end
  local moving, still, low, width, none = {}, {}, {}, {}, {}
  for i = 1, vector.size do
    local least, most = vector.statistics.min[i], vector.statistics.max[i]
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
  end
  if #still > 0 then ops[#ops + 1] = { op = "multiply", at = still, by = 0.0 } end
  return ops
end

local function by_slot(cameras)
  for i = 2, #cameras do
    local one, k = cameras[i], i - 1
    while k > 0 and one.slot < cameras[k].slot do
      cameras[k + 1] = cameras[k]
      k = k - 1
    end
    cameras[k + 1] = one
  end
end

local LATER <const> = "is of GR00T N1.7, as LeRobot 0.6 trains it, whose folders are not run by this release; it "
                      .. "runs those of N1.5 of LeRobot 0.4 and 0.5, and N1.7 by a pipeline with arch = \"groot_n17\""

return {
  arch    = "groot_n15",
  resize  = "resize-naive",
  packs   = PACKS,
  unpacks = UNPACKS,
  others  = { action_decode_transform = LATER, model_params_fp32 = LATER },
  steps   = { "groot_eagle_encode_v3", "groot_eagle_collate_v3" },
  options = {
    -- The model says how long state and actions are.
    [PACKS]   = { state_horizon = true, action_horizon = true, max_state_dim = true, max_action_dim = true,
                  language_key = true, formalize_language = true, embodiment_tag = true,
                  embodiment_mapping = true, normalize_min_max = true },
    [UNPACKS] = { env_action_dim = true, normalize_min_max = true },
  },
  adapt   = function(robot, before, after)
    local config <const>, pack <const> = given.config, before.config
    local rank <const> = config.lora_rank
    if math.type(rank) and rank > 0 then error("config.json: lora_rank: must be 0, is " .. rank, 0) end
    if pack.formalize_language then refuse(before, "formalize_language", "is not supported") end
    local tag <const> = pack.embodiment_tag or config.embodiment_tag
    if tag ~= config.embodiment_tag then
      refuse(before, "embodiment_tag", "is '" .. tostring(tag) .. "', but that of config.json is '"
             .. tostring(config.embodiment_tag) .. "'")
    end
    local numbers <const> = type(pack.embodiment_mapping) == "table" and pack.embodiment_mapping or published
    if not published[tag] or numbers[tag] ~= published[tag] then
      refuse(before, "embodiment_mapping", "'" .. tostring(tag) .. "' must have its published number, "
             .. tostring(published[tag] or "but has none"))
    end
    by_slot(robot.cameras)
    local measured <const> = robot.state.inputs[1]
    local sent <const> = part(after, UNPACKS, "action", robot.actions.size)
    if measured then
      robot.state.ops = to_model(part(before, PACKS, "observation.state", measured.size))
    end
    robot.actions.ops, robot.actions.limits = steps.actions({ sent }), steps.limits({ sent })
    robot.norm = { mode = "none" }
    local key <const> = pack.language_key
    robot.prompt = { input = type(key) == "string" and key or "task", template = "eagle" .. #robot.cameras,
                     max_tokens = MOST }
    -- A chunk may be shorter than LeRobot's queue of it.
    local most <const> = given.numbers and given.numbers.horizon
    if most and math.type(robot.execute) and robot.execute > most then robot.execute = most end
  end,
}
