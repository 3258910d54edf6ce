-- pi0.5 on DROID: a Franka arm with an exterior and a wrist camera, controlled at 15 Hz with joint
-- velocities; sub-tasks are said from the same prefill and decoded across frames.
local TXT_TOKENS <const> = 200
local OBS_TOKENS <const> = 2 * 256 + TXT_TOKENS

return pipeline {
  name   = "pi05_droid",
  schema = 1,
  model  = model { arch = "pi05", weights = "pi05_droid", dtype = "bf16", round = "mixed" },
  robot  = "robots/droid.lua",

  frame  = frame { period_ms = 1000 / 15, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = "observation/exterior_image_1_left", h = 224, w = 224 },
    image  { name = "observation/wrist_image_left", h = 224, w = 224 },
    tensor { name = "observation/joint_position", shape = { 7 } },
    tensor { name = "observation/gripper_position", shape = { 1 } },
    text   { name = "prompt", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame    { name = "obs",  tokens = OBS_TOKENS },
    kv.requests { name = "lang", tokens = OBS_TOKENS + 64, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 15, 32 } },
  },

  nodes = {
    prefill { name = "see", writes = "obs",
              reads = { "observation/exterior_image_1_left", "observation/wrist_image_left",
                        "observation/joint_position", "observation/gripper_position",
                        "prompt" } },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 60, on_miss = "hold", limit = 3 } },
    decode  { name = "talk", kv = "lang", spawn = every(1), max_tokens = 30,
              out = stream "narration", deadline = soft { ms = 2000, on_miss = "shed" } },
  },

  capture = capture { batch = { 1, 3, 5, 8 }, k = { 4, 5, 8, 30 } },
  memory  = memory { device = "9GiB" },
  policy  = use { name = "oxygen", params = { k = 5 } },
}
