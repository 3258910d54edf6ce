-- A prefill that runs in every frame reads a text that is not there in the first one.
return pipeline {
  name   = "stream_default",
  schema = 1,
  model  = model { arch = "pi05" },
  frame  = frame { period_ms = 50 },
  inputs = { tensor { name = "state", shape = { 14 } }, text { name = "prompt", max_tokens = 20 } },
  resources = {
    kv.frame    { name = "obs",  tokens = 600 },
    kv.requests { name = "lang", tokens = 664, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 50, 32 } },
  },
  nodes = {
    prefill { name = "see", reads = { "state", "talk" }, writes = "obs" },
    action  { name = "act", kv = "obs", out = "chunk", deadline = hard { ms = 45 } },
    decode  { name = "talk", kv = "lang", spawn = every(2), max_tokens = 30, out = stream "talk" },
    decode  { name = "plan", kv = "lang", spawn = every(2), max_tokens = 30,
              out = stream { name = "plan", default = "stay", tokens = 9 } },
  },
  capture = capture { batch = { 1, 2, 3, 4, 5, 6, 7, 8 }, k = { 30 } },
}
