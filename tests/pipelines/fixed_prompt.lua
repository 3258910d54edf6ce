-- An arm that says every third frame what it sees: its second prompt has a picture and fixed words, and
-- no text.
return pipeline {
  name   = "fixed_prompt",
  schema = 1,
  models = { arm = model { arch = "pi05_causal", dtype = "f32" } },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image  { name = "cam", h = 56, w = 56 },
    tensor { name = "state", shape = { 8 } },
    text   { name = "prompt", max_tokens = 12 },
  },
  resources = {
    kv.frame    { name = "seen", tokens = 16 + 10 },
    kv.requests { name = "captions", tokens = 16 + 10 + 6, slots = 2, share_prefix = "seen" },
    kv.frame    { name = "obs", tokens = 16 + 12 },
    buffer      { name = "chunk", shape = { 6, 32 } },
  },
  nodes = {
    prefill { name = "look", model = "arm", reads = { "cam" }, writes = "seen", template = "caption",
              spawn = every(3) },
    decode  { name = "caption", model = "arm", kv = "captions", spawn = on_change("seen"), max_tokens = 6,
              out = stream "caption" },
    prefill { name = "see", model = "arm", reads = { "cam", "state", "prompt" }, writes = "obs" },
    action  { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk",
              deadline = hard { ms = 900 } },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
