-- GR00T N1.7 as LeRobot 0.6 saves it. One step packs state and pictures, one cuts pictures and writes the chat, and one
-- of two makes the robot's actions: of one vector, or of groups of columns that may be changes of the state.
local steps <const> = include "experiment/steps.lua"
local columns <const> = include "modality/columns.lua"
local vector <const> = include "lerobot/groot_vector.lua"
local actions_of_groups <const> = include "lerobot/groot_groups.lua"
local fields <const> = include "lerobot/groot_fields.lua"
local refuse <const>, flag <const> = fields.refuse, fields.flag

local PACKS <const>, SEES <const> = "groot_n1_7_pack_inputs_v1", "groot_n1_7_vlm_encode_v1"
local VECTOR <const>, GROUPS <const> = "groot_action_unpack_unnormalize_v2", "groot_n1_7_action_decode_v1"
local CONFIG <const> = "config.json: "

-- Names that begin with the first are from it on and before the second.
local IMAGES <const>, BEHIND <const> = "observation.images", "observation.imaget"

-- Numbers of the kinds of robots that the model's description has, too.
local published <const> = {
  oxe_droid_relative_eef_relative_joint = 24, xdof_relative_eef_relative_joint = 27,
  xdof_relative_eef_relative_joint_subtask = 27, real_g1_relative_eef_relative_joints = 25,
  real_r1_pro_sharpa_relative_eef = 26, real_r1_pro_sharpa_relative_eef_human = 26,
  real_r1_pro_sharpa_relative_eef_maxinsights = 26, real_r1_pro_sharpa_relative_eef_mecka = 26,
  unitree_g1_full_body_with_waist_height_nav_cmd = 25, simpler_env_google = 0, simpler_env_widowx = 1,
  libero_sim = 2, new_embodiment = 10,
}

-- Rows of the chat around the task, and of the task.
local MOST <const> = 256

-- Which of the two steps the postprocessor has.
local function unpacks()
  local list <const> = type(given.postprocessor) == "table" and given.postprocessor.steps
  for _, step in ipairs(type(list) == "table" and list or {}) do
    if type(step) == "table" and step.registry_name == GROUPS then return GROUPS end
  end
  return VECTOR
end

-- --- pictures -----------------------------------------------------------------------------------

-- Cameras in the order of video_modality_keys, without any of them in that of their names.
local function order(robot, pack)
  local keys <const> = pack.config.video_modality_keys
  vector.by_slot(robot.cameras)
  for _, camera in ipairs(robot.cameras) do
    local lone <const> = camera.slot == "observation.image" and #robot.cameras == 1
    if (camera.slot < IMAGES or camera.slot >= BEHIND) and not lone then
      error(CONFIG .. 'input_features["' .. camera.slot .. '"]: does not begin with ' .. IMAGES
            .. ", so LeRobot drops it: take it out of the features", 0)
    end
  end
  if keys == nil or type(keys) == "table" and next(keys) == nil then return end
  if not columns.is_list(keys) then refuse(pack, "video_modality_keys", "must list names") end
  local by_name, taken, ordered = {}, {}, {}
  for _, camera in ipairs(robot.cameras) do by_name[camera.slot] = camera end
  for _, key in ipairs(keys) do
    if type(key) ~= "string" then refuse(pack, "video_modality_keys", "must list names") end
    -- LeRobot takes the name that its conversions of one data set gave to this camera.
    local camera = by_name["observation.images." .. key]
                   or key == "wrist_image" and by_name["observation.images.image2"] or nil
    if camera and taken[camera] then refuse(pack, "video_modality_keys", "'" .. key .. "' stands twice") end
    if camera then
      taken[camera], ordered[#ordered + 1] = true, camera
    end
  end
  if #ordered == 0 then return end
  for _, camera in ipairs(robot.cameras) do
    if not taken[camera] then
      error(CONFIG .. 'input_features["' .. camera.slot .. '"]: is not among video_modality_keys of '
            .. "policy_preprocessor.json, so LeRobot drops it: take it out of the features", 0)
    end
  end
  robot.cameras = ordered
end

-- [height, width] of a step; nil: it says none.
local function pair(step, name)
  local value <const> = step.config[name]
  if value == nil then return nil end
  local good = columns.is_list(value) and #value == 2
  for i = 1, 2 do good = good and math.type(value[i]) == "integer" and value[i] > 0 end
  if not good then refuse(step, name, "must be [height, width]") end
  return value
end

-- How pictures are cut. The tower's processor would resize what comes out to whole squares of patches: nothing is left
-- for it to do with pictures of the model's size.
local function cut(robot, sees)
  local own <const> = sees.config
  local target <const>, inner <const> = pair(sees, "image_target_size"), pair(sees, "image_crop_size")
  local boxes <const> = flag(sees, "letter_box_transform", false)
  if not target then refuse(sees, "image_target_size", "must be [height, width]") end
  local edge, middle = own.shortest_image_edge, own.crop_fraction
  if edge == nil or edge == 0 then edge = target[1] end
  if math.type(edge) ~= "integer" or edge < 1 or edge > 4096 then
    refuse(sees, "shortest_image_edge", "must be a number of pixels, is " .. tostring(edge))
  end
  local said <const> = middle ~= nil and "crop_fraction" or "image_crop_size"
  if middle == nil then middle = inner and inner[1] / target[1] or 1.0 end
  if not math.type(middle) or not (middle > 0 and middle <= 1) then
    refuse(sees, said, "must leave a part above 0 and at most 1, leaves " .. tostring(middle))
  end
  robot.resize, robot.edge, robot.middle = boxes and "letterbox-middle" or "resize-middle", edge, middle
  local made, at = target, "image_target_size"
  if flag(sees, "use_albumentations", false) then
    if not boxes then
      refuse(sees, "letter_box_transform", "must be true with use_albumentations: without it the size of the model's "
             .. "pictures is that of the cameras")
    end
    robot.resize, made, at = "letterbox-area", { edge, edge }, "shortest_image_edge"
  end
  local sizes <const> = given.numbers and given.numbers.sizes or {}
  for _, size in ipairs(sizes) do
    if size[1] ~= made[1] or size[2] ~= made[2] then
      refuse(sees, own[at] ~= nil and at or "image_target_size", "pictures of " .. made[1] .. " x " .. made[2]
             .. " are not run; the model takes " .. size[1] .. " x " .. size[2])
    end
  end
end

-- --- actions ------------------------------------------------------------------------------------

-- LeRobot goes by config.json and sets the step's own word by it.
local function is_libero(after)
  local config <const>, own <const> = given.config, after.config
  local word = config.action_decode_transform
  if word == nil and config.embodiment_tag == "libero_sim" then -- absent is auto, null is none: they look alike here
    error(CONFIG .. "action_decode_transform: must be said for libero_sim, auto, none or libero", 0)
  end
  if word == "auto" then word = config.embodiment_tag == "libero_sim" and "libero" or nil end
  if word == "none" or word == "" then word = nil end
  if word ~= nil and word ~= "libero" then
    error(CONFIG .. "action_decode_transform: must be auto, none or libero, is " .. tostring(word), 0)
  end
  local says <const> = "config.json's action_decode_transform says " .. (word or "none")
  local same <const>, step_word = own.libero_gripper_action, own.action_decode_transform
  if same ~= nil and flag(after, "libero_gripper_action", false) ~= (word ~= nil) then
    refuse(after, "libero_gripper_action", "is " .. tostring(same) .. ", but " .. says)
  end
  if step_word == "none" then step_word = nil end
  if step_word ~= nil and step_word ~= word then
    refuse(after, "action_decode_transform", "is " .. tostring(step_word) .. ", but " .. says)
  end
  if not flag(after, "libero_gripper_binarize", true) and word then
    refuse(after, "libero_gripper_binarize", "must be true: LeRobot sets it where " .. says)
  end
  return word ~= nil
end

-- A gripper of 0 .. 1 as LIBERO has it: -1 is open.
local function turn_gripper(robot, column)
  local ops <const>, limits <const> = robot.actions.ops, robot.actions.limits
  local at <const> = { column }
  ops[#ops + 1] = { op = "multiply", at = at, by = 2.0 }
  ops[#ops + 1] = { op = "shift", at = at, by = -1.0 }
  ops[#ops + 1] = { op = "sign", at = at }
  ops[#ops + 1] = { op = "multiply", at = at, by = -1.0 }
  limits.min[column], limits.max[column] = -1.0, 1.0
end

local function actions_of_vector(robot, after)
  local own <const>, actions <const> = after.config, robot.actions
  local dim <const> = own.env_action_dim
  if dim ~= actions.size then
    refuse(after, "env_action_dim", "is " .. tostring(dim) .. ", but the action of config.json has " .. actions.size
           .. " entries")
  end
  local sent <const> = vector.part(after, VECTOR, "action", actions.size)
  local ops <const>, changes <const> = steps.actions({ sent }), actions.ops or {}
  if flag(after, "clip_normalized_action", false) and sent.mode ~= "none" then
    table.insert(ops, 1, { op = "clamp", low = -1.0, high = 1.0 })
  end
  actions.ops, actions.limits = ops, steps.limits({ sent })
  -- LeRobot turns a gripper in the last of seven columns or more, before the state is added.
  if is_libero(after) and actions.size >= 7 then turn_gripper(robot, actions.size) end
  for _, op in ipairs(changes) do
    ops[#ops + 1] = op
    for _, i in ipairs(op.at) do actions.limits.min[i], actions.limits.max[i] = false, false end
  end
end

-- --- the whole ----------------------------------------------------------------------------------

local function check_robot(pack)
  local config <const>, own <const> = given.config, pack.config
  local tag <const> = own.embodiment_tag or "new_embodiment"
  local named <const> = config.embodiment_tag or "new_embodiment"
  if tag ~= named then
    refuse(pack, "embodiment_tag", "is '" .. tostring(tag) .. "', but that of config.json is '" .. tostring(named)
           .. "'")
  end
  local numbers <const> = own.embodiment_mapping == nil and published or own.embodiment_mapping
  if not published[tag] or type(numbers) ~= "table" or numbers[tag] ~= published[tag] then
    refuse(pack, "embodiment_mapping", "'" .. tostring(tag) .. "' must have its published number, "
           .. tostring(published[tag] or "but has none"))
  end
  for _, name in ipairs { "max_state_dim", "max_action_dim" } do
    local wide <const> = own[name] == nil and 132 or own[name]
    if math.type(wide) ~= "integer" then refuse(pack, name, "must be a whole number, is " .. tostring(wide)) end
    if wide ~= (config[name] or 132) then
      refuse(pack, name, "is " .. tostring(wide) .. ", but that of config.json is " .. tostring(config[name] or 132))
    end
  end
  if config.tokenizer_assets_repo ~= nil then
    error(CONFIG .. "tokenizer_assets_repo: is of GR00T N1.5, but the processors' steps are of N1.7", 0)
  end
  for _, name in ipairs { "state_horizon", "video_horizon" } do
    if own[name] ~= nil and own[name] ~= 1 then
      refuse(pack, name, "must be 1, is " .. tostring(own[name]) .. ": observations of several times are not supported")
    end
  end
  if own.language_key ~= nil and (type(own.language_key) ~= "string" or own.language_key == "") then
    refuse(pack, "language_key", "must be a name, is " .. tostring(own.language_key))
  end
end

return {
  arch    = "groot_n17",
  resize  = "resize-middle",
  packs   = PACKS,
  unpacks = unpacks(),
  steps   = { SEES },
  adds_state = function(after) return after.config.use_relative_action == true end,
  options = {
    -- Training alone reads the horizons, what is dropped, and percentiles, which stand in its statistics.
    [PACKS]  = { state_horizon = true, action_horizon = true, valid_action_horizon = true, video_horizon = true,
                 max_state_dim = true, max_action_dim = true, language_key = true, formalize_language = true,
                 embodiment_tag = true, embodiment_mapping = true, normalize_min_max = true,
                 state_dropout_prob = true, clip_outliers = true, use_percentiles = true,
                 video_modality_keys = true, raw_stats = true, modality_config = true },
    [SEES]   = { model_name = true, image_crop_size = true, image_target_size = true, shortest_image_edge = true,
                 crop_fraction = true, use_albumentations = true, letter_box_transform = true, device = true },
    [VECTOR] = { env_action_dim = true, normalize_min_max = true, clip_normalized_action = true,
                 libero_gripper_action = true, libero_gripper_binarize = true },
    [GROUPS] = { env_action_dim = true, raw_stats = true, modality_config = true, use_percentiles = true,
                 use_relative_action = true, action_decode_transform = true },
  },
  adapt = function(robot, pack, after, before)
    local sees <const>, own <const> = before[SEES], pack.config
    if not sees then error("policy_preprocessor.json: steps: there is no " .. SEES, 0) end
    if type(sees.config.model_name) ~= "string" then refuse(sees, "model_name", "must be the tokenizer's model") end
    check_robot(pack)
    order(robot, pack)
    if #robot.cameras < 1 or #robot.cameras > 8 then
      error(CONFIG .. "input_features: 1 to 8 pictures are read, not " .. #robot.cameras, 0)
    end
    cut(robot, sees)
    local measured <const> = robot.state.inputs[1]
    if not measured then error(CONFIG .. "input_features: must have observation.state", 0) end
    if measured.size > (own.max_state_dim or 132) then
      refuse(pack, "max_state_dim", "is " .. tostring(own.max_state_dim or 132) .. ", but the state has "
             .. measured.size .. " entries")
    end
    robot.state.normalised = vector.to_model(vector.part(pack, PACKS, "observation.state", measured.size),
                                             flag(pack, "clip_outliers", true))
    if unpacks() == GROUPS then
      actions_of_groups(robot, pack, after, is_libero(after) and turn_gripper or nil)
    else
      actions_of_vector(robot, after)
    end
    robot.norm = { mode = "none" }
    local words <const> = flag(pack, "formalize_language", true)
    robot.prompt = { input = own.language_key or "task", max_tokens = MOST,
                     template = (words and "qwen3_vl_words" or "qwen3_vl") .. #robot.cameras,
                     default = "Perform the task." }
    -- A chunk is as long as the model's, the configuration's and the groups' are.
    local chunk <const> = given.config.chunk_size
    if chunk ~= nil and (math.type(chunk) ~= "integer" or chunk < 1) then
      error(CONFIG .. "chunk_size: must be a number of rows, is " .. tostring(chunk), 0)
    end
    if chunk and math.type(robot.execute) and robot.execute > chunk and robot.execute ~= 50 then -- LeRobot: 50 is 40
      error(CONFIG .. "n_action_steps: " .. robot.execute .. " of a chunk_size of " .. chunk, 0)
    end
    for _, most in pairs { chunk or false, robot.actions.max_rows or false,
                           given.numbers and given.numbers.horizon or false } do
      if math.type(most) == "integer" and math.type(robot.execute) and robot.execute > most then
        robot.execute = most
      end
    end
  end,
}
