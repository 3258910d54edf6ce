-- LIBERO: a simulated Franka arm, two cameras, Cartesian actions.
--
-- State: position of the hand 3, axis-angle 3, gripper 2. Action: change of the hand's pose 6,
-- gripper 1. The client turns both pictures by 180 degrees before it sends them and executes 5 of
-- 10 actions. Variants bear the names of openpi's configurations.
return {
  name = "libero",

  cameras = {
    { slot = "base_0_rgb", input = "observation/image" },
    { slot = "left_wrist_0_rgb", input = "observation/wrist_image" },
    { slot = "right_wrist_0_rgb" }, -- no such camera: black and masked
  },
  resize = "openpi_pil",

  state   = { inputs = { { input = "observation/state", size = 8 } } },
  actions = { size = 7, relative = true },
  norm    = { mode = "quantile", asset = "physical-intelligence/libero" },
  -- openpi trained this one with discrete_state_input = False: no state in its prompt.
  prompt  = { template = "plain", max_tokens = 200 },

  rate_hz = 20,
  execute = 5,

  variant  = "pi05_libero",
  variants = {
    pi05_libero = {},
    -- Its training data were differences of differences: the state is added once more.
    pi0_libero  = {
      norm    = { mode = "mean_std" },
      prompt  = { max_tokens = 48 },
      actions = { ops = { { op = "add_state", at = { 1, 2, 3, 4, 5, 6 } } } },
    },
  },
}
