-- LIBERO, a simulated Franka arm, driven by OpenVLA: one camera, Cartesian actions.
--
-- Action: change of the hand's pose 6, gripper 1. Training data had the gripper as 0 closed .. 1 open,
-- the simulator wants -1 open, 1 closed. The client turns its picture by 180 degrees before it sends
-- it; for models that were trained with crops it also takes the middle 0.9 of the area and resizes
-- that back, and it does the resizing of the published harness (JPEG round trip, TensorFlow's
-- antialiased lanczos3): none of that is done here.
-- A fine-tuned checkpoint holds the statistics of the one suite that it was trained on; for one with
-- several the variant names them.
local function suite(key) return { norm = { asset = key } } end

return {
  name = "openvla_libero",

  cameras = { { slot = "full_image", input = "observation/image" } },
  ignore  = { "observation/wrist_image" },
  resize  = "checkpoint",

  actions = {
    size   = 7, relative = true,
    decode = { { op = "bins" } }, -- token ids; how many bins there are is the model's to say
    ops    = {
      { op = "unit_to_range", at = { 7 }, low = -1, high = 1 },
      { op = "sign", at = { 7 } },
      { op = "multiply", at = { 7 }, by = -1 },
    },
  },
  norm   = { mode = "quantile" },
  prompt = { template = "openvla" },

  rate_hz = 20,
  execute = 1,

  variants = {
    spatial = suite "libero_spatial",
    object  = suite "libero_object",
    goal    = suite "libero_goal",
    long    = suite "libero_10",
  },
}
