-- The bundled demo: a pi0.5 of 2.2 M parameters that does five Meta-World tasks. 64 x 64 pictures,
-- chunks of 16 actions of which 8 are executed at 80 Hz. Made by pipelines/checkpoints/metaworld/train.
local TXT_TOKENS <const> = 32
local OBS_TOKENS <const> = 2 * 16 + TXT_TOKENS        -- the third camera is masked: no tokens

return pipeline {
  name   = "demo_metaworld",
  schema = 1,
  model  = model { arch = "pi05", weights = "pipelines/checkpoints/metaworld" },
  robot  = "robots/metaworld.lua",

  frame  = frame { period_ms = 100, clock = "external" },

  inputs = {
    image  { name = "observation/image", h = 64, w = 64 },
    image  { name = "observation/wrist_image", h = 64, w = 64 },
    tensor { name = "observation/state", shape = { 4 } },
    text   { name = "prompt", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame    { name = "obs",  tokens = OBS_TOKENS },
    kv.requests { name = "lang", tokens = OBS_TOKENS + 12, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 16, 4 } },
  },

  nodes = {
    prefill { name = "see", reads = { "observation/image", "observation/wrist_image", "observation/state",
                                     "prompt" },
              writes = "obs" },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 90, on_miss = "hold", limit = 3 } },
    decode  { name = "talk", kv = "lang", spawn = every(1), max_tokens = 12,
              out = stream "narration", deadline = soft { ms = 2000, on_miss = "shed" } },
  },

  capture = capture { batch = { 1, 3, 5, 8 }, k = { 2, 3, 4, 6, 12 } },
  policy  = use { name = "oxygen", params = { k = 4 } },
}
