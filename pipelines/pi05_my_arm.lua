-- A new robot as an overlay: an arm with six joints and a gripper, one camera above the table and
-- one on the wrist, 20 Hz. Everything that is not said here is pi05_droid.lua. doc/new-robot.md
-- walks through this file.
local INPUTS <const> = { "camera/top", "camera/wrist", "joints", "prompt" }

return extend("pi05_droid.lua", {
  name  = "pi05_my_arm",
  model = { weights = "my_arm_checkpoint" },

  robot = {
    name    = "my_arm",
    cameras = {
      { slot = "base_0_rgb", input = "camera/top" },
      { slot = "left_wrist_0_rgb", input = "camera/wrist", missing = "mask" },
      { slot = "right_wrist_0_rgb" },            -- no such camera: masked
    },
    state   = { inputs = { { input = "joints", size = 7 } } },
    -- The model was trained on changes of the six joints; the gripper is absolute.
    actions = { size = 7, ops = { { op = "add_state", at = { 1, 2, 3, 4, 5, 6 } } } },
    norm    = { mode = "quantile", asset = "my_arm" },
    prompt  = { template = "with_state", state = true, max_tokens = 200 },
    rate_hz = 20,
    execute = 10,
  },

  frame  = { period_ms = 50 },

  inputs = {
    without "observation/exterior_image_1_left", without "observation/wrist_image_left",
    without "observation/joint_position", without "observation/gripper_position",
    image  { name = "camera/top", h = 224, w = 224 },
    image  { name = "camera/wrist", h = 224, w = 224, optional = true },
    tensor { name = "joints", shape = { 7 } },
  },

  resources = { buffer { name = "chunk", shape = { 50, 32 } } },

  nodes = {
    prefill { name = "see", reads = INPUTS },
    action  { name = "act", deadline = hard { ms = 45, on_miss = "decay", decay_actions = 10 } },
  },
})
