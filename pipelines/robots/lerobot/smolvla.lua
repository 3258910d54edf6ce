-- SmolVLA: the task alone, of which the last tokens stay; it runs with the cameras that come, and without
-- statistics nothing is normalised: its base model has only those of other robots' names.
local config <const>, tokenizer <const> = given.config or {}, given.tokenizer or {}

-- LeRobot's adaption of an ALOHA arm to the units of the models' first data: joints that turn the other way
-- and the angle of the gripper's horn, on the normalised state and on the actions before they are the robot's.
local flips <const>, grippers <const> = { op = "multiply", at = { 2, 3, 9, 10 }, by = -1 }, { 7, 14 }
local state_to_model <const> = {
  flips, { op = "unit_to_range", at = grippers, low = 0.01844, high = 0.05800 },
  { op = "linkage", at = grippers, horn = 0.022, arm = 0.036 },
  { op = "range_to_unit", at = grippers, low = 0.4, high = 1.5 },
}
local actions_to_robot <const> = {
  flips, { op = "unit_to_range", at = grippers, low = 0.4, high = 1.5 },
  { op = "range_to_unit", at = grippers, low = -0.6213, high = 1.4910 },
}

return {
  arch   = "smolvla",
  guided = true,
  prompt = { step = "smolvla_new_line_processor", template = "task" },
  resize = "lerobot_corner",
  off    = { "use_delta_joint_actions_aloha" },
  adapt  = function(robot)
    for _, camera in ipairs(robot.cameras) do camera.missing = camera.input and "mask" or nil end
    robot.norm.missing, robot.norm.precision = "pass", "f64"
    local prompt <const> = robot.prompt
    prompt.default, prompt.truncate = "\n", true -- as an empty task becomes
    prompt.keep = tokenizer.truncation_side == "left" and "last" or nil
    if config.adapt_to_pi_aloha then
      robot.state.normalised, robot.actions.decode = state_to_model, actions_to_robot
    end
  end,
  rows   = function(pictures, tokens, text)
    return pictures * tokens + text + 1 + (config.add_image_special_tokens and 3 * #given.slots or 0)
  end,
}
