-- The arm of two_models.lua alone.
local TXT <const> = 12
local OBS <const> = 48 + TXT
return pipeline {
  name   = "two_models_arm",
  schema = 1,
  model  = model { arch = "pi05", dtype = "f32" },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image  { name = "cam", h = 56, w = 56, optional = true },
    tensor { name = "state", shape = { 8 } },
    text   { name = "prompt", max_tokens = TXT },
  },
  resources = {
    kv.frame    { name = "obs",  tokens = OBS },
    kv.requests { name = "lang", tokens = OBS + 6, slots = 3, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 6, 32 } },
  },
  nodes = {
    prefill { name = "see", reads = { "cam", "state", "prompt" }, writes = "obs" },
    action  { name = "act", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 900 } },
    decode  { name = "talk", kv = "lang", spawn = every(2), max_tokens = 6, out = stream "talk" },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
