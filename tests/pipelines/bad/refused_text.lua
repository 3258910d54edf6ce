-- Graphs that mean nothing, about texts that are waited for.
return pipeline {
  name = "refused_text", schema = 1, models = { main = model { arch = "any" }, small = model { arch = "any" } },
  frame = frame { period_ms = 100 },
  inputs = { image { name = "base", h = 8, w = 8 }, text { name = "prompt", max_tokens = 8 }, text { name = "goal", max_tokens = 8 } },
  resources = {
    kv.frame { name = "obs", tokens = 64 }, kv.frame { name = "high", tokens = 64 },
    kv.requests { name = "lang", tokens = 128, slots = 2, share_prefix = "obs" },
    kv.requests { name = "plans", tokens = 128, slots = 2, share_prefix = "high" },
    buffer { name = "a", shape = { 4, 7 } }, buffer { name = "b", shape = { 4, 7 } },
  },
  partitions = { sm { name = "rt", share = 0.5 } },
  nodes = {
    prefill { name = "see", model = "main", reads = { "base", "prompt" }, writes = "obs" },
    prefill { name = "look", model = "main", reads = { "base", "goal" }, writes = "high" },
    decode { name = "say", model = "main", kv = "lang", spawn = every(1), max_tokens = 4, out = stream "said",
             draft = { model = "small", tokens = 2 }, partition = "rt" },
    decode { name = "plan", model = "main", kv = "plans", spawn = every(9), max_tokens = 4, out = stream "plan" },
    decode { name = "echo", model = "main", kv = "lang", spawn = every(9), max_tokens = 4, out = stream "echo", after = "say" },
    action { name = "act", model = "main", kv = "lang", after = "say", out = "a", deadline = hard { ms = 50 } },
    action { name = "late", model = "main", kv = "obs", after = "plan", out = "b", deadline = hard { ms = 50 } },
  },
  capture = capture { batch = { 1, 2 }, k = { 4 } },
}
