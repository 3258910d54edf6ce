-- Decode nodes straight on both kv.frames of two chains, one of them beside a kv.requests.
local TXT <const>, ASK <const>, OWN <const>, NEW <const> = 12, 9, 4, 6
return pipeline {
  name   = "on_frame",
  schema = 1,
  models = { arm = model { arch = "pi05_causal", dtype = "f32" } },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image  { name = "cam", h = 56, w = 56 },
    image  { name = "side", h = 56, w = 56 },
    tensor { name = "state", shape = { 8 } },
    text   { name = "question", max_tokens = ASK },
    text   { name = "prompt", max_tokens = TXT },
    text   { name = "remark", max_tokens = OWN },
  },
  resources = {
    kv.frame    { name = "asked", tokens = 32 + ASK },
    kv.frame    { name = "obs", tokens = 48 + TXT },
    kv.requests { name = "notes", tokens = 48 + TXT + OWN + NEW, slots = 2, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 6, 32 } },
  },
  nodes = {
    prefill { name = "see", model = "arm", reads = { "cam", "state", "prompt" }, writes = "obs" },
    action  { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk",
              deadline = hard { ms = 900 } },
    prefill { name = "look", model = "arm", reads = { "side", "question", "cam" }, writes = "asked" },
    decode  { name = "say", model = "arm", kv = "obs", prompt = "remark", max_tokens = NEW - 1,
              out = stream "said" },
    decode  { name = "note", model = "arm", kv = "notes", spawn = every(3), max_tokens = NEW,
              out = stream "noted" },
    decode  { name = "answer", model = "arm", kv = "asked", max_tokens = NEW, out = stream "answer" },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
