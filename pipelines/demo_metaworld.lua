-- The bundled demo: a pi0.5 of 1.1 M parameters on Meta-World, 64 x 64 pictures, chunks of 16
-- actions of which 8 are executed at 80 Hz. The weights are in
-- tests/golden/demo/episodes/checkpoint.
local TXT_TOKENS <const> = 32
local OBS_TOKENS <const> = 2 * 16 + TXT_TOKENS        -- the third camera is masked: no tokens

return pipeline {
  name   = "demo_metaworld",
  schema = 1,
  model  = model { arch = "pi05", weights = "tests/golden/demo/episodes/checkpoint" },
  robot  = "robots/metaworld.lua",

  frame  = frame { period_ms = 100, clock = "external" },

  inputs = {
    image  { name = "image", h = 64, w = 64 },
    image  { name = "wrist_image", h = 64, w = 64 },
    tensor { name = "state", shape = { 4 } },
    text   { name = "prompt", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame    { name = "obs",  tokens = OBS_TOKENS },
    kv.requests { name = "lang", tokens = OBS_TOKENS + 12, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 16, 4 } },
  },

  nodes = {
    prefill { name = "see", reads = { "image", "wrist_image", "state", "prompt" },
              writes = "obs" },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 90, on_miss = "hold" } },
    decode  { name = "talk", kv = "lang", spawn = every(1), max_tokens = 12,
              out = stream "narration", deadline = soft { ms = 2000, on_miss = "shed" } },
  },

  capture = capture { batch = { 1, 3, 5, 8 }, k = { 2, 3, 4, 6, 12 } },
  policy  = use { name = "oxygen", params = { k = 4 } },
}
