-- An arm that acts on one camera and answers questions about two: two prompts of one model.
local TXT <const>, ASK <const>, NEW <const> = 12, 9, 6
return pipeline {
  name   = "chains",
  schema = 1,
  models = { arm = model { arch = "pi05_causal", dtype = "f32" } },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image  { name = "cam", h = 56, w = 56 },
    image  { name = "side", h = 56, w = 56 },
    tensor { name = "state", shape = { 8 } },
    text   { name = "question", max_tokens = ASK },
    text   { name = "prompt", max_tokens = TXT },
  },
  resources = {
    kv.frame    { name = "asked", tokens = 32 + ASK },
    kv.requests { name = "answers", tokens = 32 + ASK + NEW, slots = 4, share_prefix = "asked" },
    kv.frame    { name = "obs", tokens = 48 + TXT },
    buffer      { name = "chunk", shape = { 6, 32 } },
  },
  nodes = {
    prefill { name = "look", model = "arm", reads = { "side", "question", "cam" }, writes = "asked" },
    decode  { name = "answer", model = "arm", kv = "answers", spawn = every(2), max_tokens = NEW,
              out = stream "answer" },
    prefill { name = "see", model = "arm", reads = { "cam", "state", "prompt" }, writes = "obs" },
    action  { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk",
              deadline = hard { ms = 900 } },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
