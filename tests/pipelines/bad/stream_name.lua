-- Names of streams that are read, and of what else is called so.
return pipeline {
  name   = "stream_name",
  schema = 1,
  model  = model { arch = "pi05" },
  frame  = frame { period_ms = 50 },
  inputs = { tensor { name = "state", shape = { 14 } }, text { name = "plan", max_tokens = 20 } },
  resources = {
    kv.frame    { name = "obs",  tokens = 600 },
    kv.requests { name = "lang", tokens = 664, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 50, 32 } },
  },
  nodes = {
    prefill { name = "see", reads = { "state", "plan" }, writes = "obs" },
    prefill { name = "read", reads = { "state", "talk" }, writes = "obs", after = "see" },
    action  { name = "act", kv = "obs", out = "chunk", deadline = hard { ms = 45 } },
    decode  { name = "talk", kv = "lang", spawn = every(2), max_tokens = 30,
              out = stream { name = "talk", default = "stay" } },
    decode  { name = "more", kv = "lang", spawn = every(2), max_tokens = 30, out = stream "talk" },
    decode  { name = "plan", kv = "lang", spawn = every(2), max_tokens = 30,
              out = stream { name = "plan", default = 7 } },
  },
  capture = capture { batch = { 1, 2, 3, 4, 5, 6, 7, 8 }, k = { 30 } },
}
