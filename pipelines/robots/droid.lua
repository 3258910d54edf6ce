-- DROID: a Franka arm with an exterior and a wrist camera, 15 Hz.
--
-- State: joint positions 7, gripper 1. Action: joint velocities 7 and gripper 1, or joint positions
-- in the variants that were trained for them. Variants bear the names of openpi's configurations.
--
-- openpi's stock client executes 8 actions and insists on a chunk of 10 rows; for it, set
-- actions.max_rows = 10.
local joint_positions = { { op = "add_state", at = { 1, 2, 3, 4, 5, 6, 7 } } }

return {
  name = "droid",

  cameras = {
    { slot = "base_0_rgb", input = "observation/exterior_image_1_left" },
    { slot = "left_wrist_0_rgb", input = "observation/wrist_image_left" },
    { slot = "right_wrist_0_rgb" },
  },
  resize = "openpi_pil",

  state = {
    inputs = {
      { input = "observation/joint_position", size = 7 },
      { input = "observation/gripper_position", size = 1 },
    },
  },
  actions = { size = 8, relative = true },
  norm    = { mode = "quantile", asset = "droid" },
  prompt  = { template = "with_state", state = true, max_tokens = 200 },

  rate_hz = 15,
  execute = 8,

  variant  = "pi05_droid",
  variants = {
    pi05_droid               = {},
    pi05_droid_finetune      = {},
    pi05_full_droid_finetune = { actions = { ops = joint_positions, relative = false } },
    pi0_droid = {
      norm   = { mode = "mean_std" },
      prompt = { template = "plain", state = false, max_tokens = 48 },
    },
  },
}
