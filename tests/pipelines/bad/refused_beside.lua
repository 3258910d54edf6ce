-- Nodes that go on with what a ring has on its way, and actions with a text that may be the last one.
return pipeline {
  name = "refused_beside", schema = 1, models = { main = model { arch = "any" } }, frame = frame { period_ms = 100 },
  inputs = { image { name = "base", h = 8, w = 8 }, text { name = "prompt", max_tokens = 8 }, text { name = "goal", max_tokens = 8 } },
  resources = {
    kv.ring { name = "one", tokens = 64, stages = 4 }, kv.ring { name = "two", tokens = 64, stages = 4 },
    kv.requests { name = "told", tokens = 128, slots = 2, share_prefix = "one" }, kv.frame { name = "obs", tokens = 64 },
    buffer { name = "a", shape = { 1, 4 } }, buffer { name = "b", shape = { 1, 4 } }, buffer { name = "c", shape = { 4, 7 } },
    buffer { name = "d", shape = { 4, 7 } },
  },
  nodes = {
    prefill { name = "enter", model = "main", reads = { "base", "prompt" }, writes = "one" },
    decode { name = "advance", model = "main", kv = prev "one", max_tokens = 4, out = "a", deadline = hard { ms = 50 } },
    prefill { name = "enter2", model = "main", reads = { "base", "prompt" }, writes = "two" },
    decode { name = "advance2", model = "main", kv = prev "two", max_tokens = 4, out = "b", deadline = hard { ms = 50 } },
    decode { name = "tell", model = "main", kv = "told", spawn = every(1), supersede = true, max_tokens = 4, out = stream "told" },
    action { name = "act", model = "main", kv = "told", after = "tell", out = "c", deadline = hard { ms = 50 } },
    prefill { name = "see", model = "main", reads = { "base", "goal" }, writes = "obs", spawn = on_change("goal") },
    action { name = "late", model = "main", kv = "obs", out = "d", spawn = on_change("obs"), deadline = hard { ms = 50 } },
  },
  capture = capture { batch = { 1 }, k = { 4 }, depth = { 4 } },
}
