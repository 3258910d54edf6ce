-- Only a prefill reads an earlier version, of a stream; a request starts on what its prefill reads.
return pipeline {
  name = "reads", schema = 1, models = { main = model { arch = "any" } }, frame = frame { period_ms = 100 },
  inputs = { image { name = "base", h = 8, w = 8 }, text { name = "prompt", max_tokens = 8 } },
  resources = { kv.frame { name = "obs", tokens = 64 }, kv.requests { name = "lang", tokens = 80, slots = 1, share_prefix = "obs" },
                kv.segments { name = "mem", tokens = 64 } },
  nodes = {
    prefill { name = "see", reads = { prev "base", prev "prompt", prev "said" }, writes = "obs" },
    decode { name = "say", kv = "lang", spawn = on_change("base"), max_tokens = 4,
             out = stream { name = "said", default = "" } },
    decode { name = "echo", kv = "lang", spawn = on_change("mem"), max_tokens = 4, out = stream "echo" },
    remember { name = "keep", reads = { prev "said" }, into = "mem" },
  },
  capture = capture { batch = { 1 }, k = { 4 } },
}
