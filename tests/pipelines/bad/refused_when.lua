-- Nodes that a policy cannot leave out of a frame, because others stand on what they do.
return pipeline {
  name = "refused_when", schema = 1, models = { a = model { arch = "any" }, b = model { arch = "any" } },
  frame = frame { period_ms = 100 },
  inputs = { image { name = "base", h = 8, w = 8 }, text { name = "prompt", max_tokens = 8 }, text { name = "goal", max_tokens = 8 } },
  resources = {
    kv.frame { name = "obs", tokens = 64 }, kv.ring { name = "one", tokens = 64, stages = 4 },
    kv.requests { name = "lang", tokens = 128, slots = 2, share_prefix = "obs" },
    buffer { name = "chunk", shape = { 4, 7 } }, buffer { name = "second", shape = { 1, 4 } },
  },
  nodes = {
    prefill { name = "see", model = "a", reads = { "base", "prompt" }, writes = "obs", when = policy() },
    decode { name = "say", model = "a", kv = "lang", spawn = every(1), max_tokens = 4, out = stream "said", when = policy() },
    action { name = "act", model = "a", kv = "lang", after = "say", out = "chunk", when = policy(),
             deadline = hard { ms = 50 } },
    prefill { name = "look", model = "b", reads = { "base", "goal" }, writes = "one", when = policy() },
    decode { name = "advance", model = "b", kv = prev "one", pack_with = "look", max_tokens = 4, out = "second",
             deadline = hard { ms = 50 }, when = policy() },
  },
  capture = capture { batch = { 1 }, k = { 4 }, depth = { 4 } },
}
