-- Valid graphs that this release does not run, about rings, and about keys without a prefill.
return pipeline {
  name   = "refused_ring", schema = 1,
  models = { a = model { arch = "any" }, b = model { arch = "any" }, c = model { arch = "any" }, d = model { arch = "any" } },
  frame  = frame { period_ms = 100, sessions = 2 },
  inputs = { image { name = "base", h = 8, w = 8 }, text { name = "prompt", max_tokens = 8 },
             segments { name = "past", max_segments = 4, tokens_each = 8 } },
  resources = {
    kv.ring { name = "one", tokens = 64, stages = 4, pack = "gather" }, kv.ring { name = "two", tokens = 64, stages = 4 },
    kv.ring { name = "three", tokens = 64, stages = 4 },
    kv.requests { name = "lang", tokens = 128, slots = 2, share_prefix = "one" },
    kv.requests { name = "told", tokens = 128, slots = 2, share_prefix = "three" },
    kv.frame { name = "bare", tokens = 64 }, kv.segments { name = "mem", tokens = 64 },
    buffer { name = "chunk", shape = { 1, 4 } }, buffer { name = "second", shape = { 1, 4 } },
  },
  nodes = {
    prefill { name = "see", model = "a", reads = { "base", "prompt" }, writes = "one" },
    decode { name = "advance", model = "a", kv = prev "one", pack_with = "see", max_tokens = 4, out = "chunk",
             deadline = hard { ms = 50, on_miss = "hold" } },
    decode { name = "talk", model = "a", kv = "lang", spawn = every(4), max_tokens = 4, out = stream "said" },
    prefill { name = "see2", model = "b", reads = { "base", "prompt" }, writes = "two" },
    decode { name = "advance2", model = "b", kv = prev "two", max_tokens = 4, out = "second", deadline = hard { ms = 50 } },
    prefill { name = "see3", model = "c", reads = { "base", "prompt" }, writes = "three" },
    decode { name = "tell", model = "c", kv = "told", spawn = every(4), max_tokens = 4, out = stream "told" },
    memory_load { name = "recall", model = "d", reads = { "past" }, from = "mem", into = "bare" },
    score { name = "rank", model = "d", kv = "bare", spawn = every(4), candidates = { "a", "b" }, out = stream "rank" },
  },
  capture = capture { batch = { 1 }, k = { 4 }, depth = { 4 }, ratio = { 1.0 } },
}
