-- Meta-World: a Sawyer arm in simulation, two 64 x 64 pictures, 80 Hz; the bundled demo's robot.
--
-- State: hand position 3, gripper opening 1. Action: change of the hand's position 3, gripper 1.
-- Pictures have the model's size; others are refused rather than resized.
return {
  name = "metaworld",

  cameras = {
    { slot = "base_0_rgb", input = "observation/image" },
    { slot = "left_wrist_0_rgb", input = "observation/wrist_image" },
    { slot = "right_wrist_0_rgb" },
  },
  resize = "none",

  state   = { inputs = { { input = "observation/state", size = 4 } } },
  actions = { size = 4, relative = true },
  norm    = { mode = "quantile", asset = "metaworld" },
  prompt  = { template = "with_state", state = true, max_tokens = 32 },

  rate_hz = 80,
  execute = 8,
}
