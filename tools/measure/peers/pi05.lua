-- pi05.lua - pi0.5 on DROID without language, for the row pi05 (tools/bench_peers): pi05_droid.lua without its decode node.
local TXT_TOKENS <const> = 64
local OBS_TOKENS <const> = 2 * 256 + TXT_TOKENS

return pipeline {
  name   = "peers_pi05",
  schema = 1,
  model  = model { arch = "pi05", weights = "none", dtype = "bf16" },
  robot  = "robots/droid.lua",

  frame  = frame { period_ms = 100000, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = "observation/exterior_image_1_left", h = 224, w = 224 },
    image  { name = "observation/wrist_image_left", h = 224, w = 224 },
    tensor { name = "observation/joint_position", shape = { 7 } },
    tensor { name = "observation/gripper_position", shape = { 1 } },
    text   { name = "prompt", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame { name = "obs", tokens = OBS_TOKENS },
    buffer   { name = "chunk", shape = { 15, 32 } },
  },

  nodes = {
    prefill { name = "see", writes = "obs",
              reads = { "observation/exterior_image_1_left", "observation/wrist_image_left",
                        "observation/joint_position", "observation/gripper_position", "prompt" } },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk", deadline = hard { ms = 90000, on_miss = "last_chunk" } },
  },

  memory = memory { device = "9GiB" },
}
