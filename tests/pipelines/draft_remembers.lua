-- An arm that remembers what it says, and a small model that proposes the words.
return pipeline {
  name = "draft_remembers", schema = 1, frame = frame { period_ms = 100 },
  models = { arm = model { arch = "pi05_causal" }, quick = model { arch = "pi05_causal" } },
  inputs = {
    image { name = "front", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } }, text { name = "prompt", max_tokens = 8 },
    segments { name = "past", max_segments = 3, tokens_each = 8 },
  },
  resources = {
    kv.frame { name = "obs", tokens = 80 }, kv.segments { name = "mem", tokens = 32 },
    kv.requests { name = "lang", tokens = 120, slots = 2, share_prefix = "obs" },
    buffer { name = "chunk", shape = { 4, 8 } },
  },
  nodes = {
    memory_load { name = "recall", model = "arm", reads = { "past" }, from = "mem", into = "obs" },
    prefill { name = "see", model = "arm", reads = { "front", "state", "prompt" }, writes = "obs", after = "recall" },
    action { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 90, on_miss = "hold" } },
    decode { name = "tell", model = "arm", kv = "lang", spawn = every(3), max_tokens = 7, out = stream "told",
             draft = { model = "quick", tokens = 2 } },
    remember { name = "keep", reads = { "told" }, into = "mem" },
  },
  capture = capture { batch = { 1, 2 }, k = { 4 }, slices = 3, ratio = { 1.0 } },
}
