-- An arm and a planner that load from one memory, which has what the planner says.
return pipeline {
  name = "two_load", schema = 1, frame = frame { period_ms = 100 },
  models = { arm = model { arch = "pi05_causal" }, planner = model { arch = "qwen2" } },
  inputs = {
    image { name = "front", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } }, text { name = "prompt", max_tokens = 8 },
    text { name = "goal", max_tokens = 8 }, segments { name = "past", max_segments = 3, tokens_each = 8 },
  },
  resources = {
    kv.frame { name = "obs", tokens = 80 }, kv.frame { name = "context", tokens = 80 }, kv.segments { name = "mem", tokens = 32 },
    kv.requests { name = "plans", tokens = 120, slots = 2, share_prefix = "context" },
    buffer { name = "chunk", shape = { 4, 8 } },
  },
  nodes = {
    memory_load { name = "recall", model = "arm", reads = { "past" }, from = "mem", into = "obs" },
    prefill { name = "see", model = "arm", reads = { "front", "state", "prompt" }, writes = "obs", after = "recall" },
    action { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 90, on_miss = "hold" } },
    memory_load { name = "recall2", model = "planner", reads = { "past" }, from = "mem", into = "context" },
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context", after = "recall2", template = "facts" },
    decode { name = "plan", model = "planner", kv = "plans", spawn = every(3), max_tokens = 6, out = stream "plan" },
    remember { name = "keep", reads = { "plan" }, into = "mem" },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 4 }, slices = 3, ratio = { 1.0 } },
}
