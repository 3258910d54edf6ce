-- Published data configurations: what experiment_cfg/metadata.json does not say of a robot. By name: its tag, cameras,
-- parts of state and actions in order, how they are transformed, and the key of the task's text.
local function all(keys, mode)
  local modes = {}
  for _, key in ipairs(keys) do modes[key] = mode end
  return modes
end

local arms <const> = { "left_arm", "right_arm", "left_hand", "right_hand" }
local so100 <const> = { "single_arm", "gripper" }

return {
  fourier_gr1_arms_only = {
    tag = "gr1", video = { "ego_view" }, state = arms, action = arms,
    state_modes = all(arms, "sin_cos"), action_modes = all(arms, "min_max"),
    language = "annotation.human.action.task_description",
  },
  so100 = {
    tag = "new_embodiment", video = { "webcam" }, state = so100, action = so100,
    state_modes = all(so100, "min_max"), action_modes = all(so100, "min_max"),
    language = "annotation.human.task_description",
  },
  so100_dualcam = {
    tag = "new_embodiment", video = { "front", "wrist" }, state = so100, action = so100,
    state_modes = all(so100, "min_max"), action_modes = all(so100, "min_max"),
    language = "annotation.human.task_description",
  },
  oxe_droid = {
    tag = "oxe_droid", video = { "exterior_image_1", "exterior_image_2", "wrist_image" },
    state = { "eef_position", "eef_rotation", "gripper_position" },
    action = { "eef_position_delta", "eef_rotation_delta", "gripper_position" },
    state_modes = { eef_position = "min_max", gripper_position = "min_max" },
    state_targets = { eef_rotation = "rotation_6d" },
    action_modes = { gripper_position = "binary" },
    action_targets = { eef_rotation_delta = "axis_angle" },
    language = "annotation.language.language_instruction", relative = true,
  },
  single_panda_gripper = {
    tag = "new_embodiment", video = { "left_view", "right_view", "wrist_view" },
    state = { "end_effector_position_relative", "end_effector_rotation_relative", "gripper_qpos", "base_position",
              "base_rotation" },
    action = { "end_effector_position", "end_effector_rotation", "gripper_close", "base_motion", "control_mode" },
    state_modes = { end_effector_position_relative = "min_max", gripper_qpos = "min_max", base_position = "min_max" },
    state_targets = { end_effector_rotation_relative = "rotation_6d", base_rotation = "rotation_6d" },
    action_modes = { end_effector_position = "min_max", end_effector_rotation = "min_max", gripper_close = "binary",
                     base_motion = "min_max", control_mode = "binary" },
    language = "annotation.human.action.task_description", relative = true,
  },
}
