-- pi0.5 on LIBERO: two cameras and a Cartesian arm in simulation, a chunk of 10 actions of which
-- 5 are executed; sub-tasks are said from the same prefill and decoded across frames.
local TXT_TOKENS <const> = 200
local OBS_TOKENS <const> = 2 * 256 + TXT_TOKENS

return pipeline {
  name   = "pi05_libero",
  schema = 1,
  model  = model { arch = "pi05", weights = "pi05_libero", dtype = "bf16", round = "mixed" },
  robot  = "robots/libero.lua",

  frame  = frame { period_ms = 100, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = "observation/image", h = 224, w = 224 },
    image  { name = "observation/wrist_image", h = 224, w = 224 },
    tensor { name = "observation/state", shape = { 8 } },
    text   { name = "prompt", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame    { name = "obs",  tokens = OBS_TOKENS },
    kv.requests { name = "lang", tokens = OBS_TOKENS + 64, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 10, 32 } },
  },

  nodes = {
    prefill { name = "see", writes = "obs",
              reads = { "observation/image", "observation/wrist_image", "observation/state",
                        "prompt" } },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 90, on_miss = "hold", limit = 3 } },
    decode  { name = "talk", kv = "lang", spawn = every(1), max_tokens = 30,
              out = stream "narration", deadline = soft { ms = 3000, on_miss = "shed" } },
  },

  capture = capture { batch = { 1, 3, 5, 8 }, k = { 4, 5, 8, 30 } },
  memory  = memory { device = "9GiB" },
  policy  = use { name = "oxygen", params = { k = 5 } },
}
