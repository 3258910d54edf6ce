-- The actions of chains.lua alone.
return pipeline {
  name   = "chains_arm",
  schema = 1,
  models = { arm = model { arch = "pi05_causal", dtype = "f32" } },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image  { name = "cam", h = 56, w = 56 },
    tensor { name = "state", shape = { 8 } },
    text   { name = "prompt", max_tokens = 12 },
  },
  resources = {
    kv.frame { name = "obs", tokens = 48 + 12 },
    buffer   { name = "chunk", shape = { 6, 32 } },
  },
  nodes = {
    prefill { name = "see", reads = { "cam", "state", "prompt" }, writes = "obs" },
    action  { name = "act", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 900 } },
  },
}
