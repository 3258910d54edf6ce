-- GR00T N1.5: one step of each processor packs and normalises. State and actions are one vector each, from their
-- smallest to their largest value; pictures stand in the order of their names.
local steps <const> = include "experiment/steps.lua"
local vector <const> = include "lerobot/groot_vector.lua"
local refuse <const> = include("lerobot/groot_fields.lua").refuse

-- Numbers of the kinds of robots that the model's description has, too.
local published <const> = { new_embodiment = 31, oxe_droid = 17, agibot_genie1 = 26, gr1 = 24, so100 = 2,
                            unitree_g1 = 3 }
local PACKS <const>, UNPACKS <const> = "groot_pack_inputs_v3", "groot_action_unpack_unnormalize_v1"

-- Rows of the chat around the task, and of the task.
local MOST <const> = 256

local LATER <const> = "is of GR00T N1.7, as LeRobot 0.6 saves it, of whose steps the processors have none"

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
    if rank ~= nil and rank ~= 0 then error("config.json: lora_rank: must be 0, is " .. tostring(rank), 0) end
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
    local dim <const> = after.config.env_action_dim
    if dim ~= nil and dim ~= 0 and dim ~= robot.actions.size then
      refuse(after, "env_action_dim", "is " .. tostring(dim) .. ", but the action of config.json has "
             .. robot.actions.size .. " entries")
    end
    vector.by_slot(robot.cameras)
    local measured <const> = robot.state.inputs[1]
    local sent <const> = vector.part(after, UNPACKS, "action", robot.actions.size)
    if measured then
      robot.state.ops = vector.to_model(vector.part(before, PACKS, "observation.state", measured.size))
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
