-- A memory that two inputs would fill. A planner that looks at what two robots see is not refused.
return pipeline {
  name = "refused_robots", schema = 1, frame = frame { period_ms = 100 },
  models = { arm = model { arch = "any" }, planner = model { arch = "any" } },
  robots = { left = "robots/aloha.lua", right = "robots/aloha.lua" },
  inputs = { image { name = "left/base", h = 8, w = 8 }, image { name = "right/base", h = 8, w = 8 }, text { name = "goal", max_tokens = 8 },
             segments { name = "past", max_segments = 4, tokens_each = 8 }, segments { name = "facts", max_segments = 4, tokens_each = 8 } },
  resources = {
    kv.frame { name = "one", tokens = 64 }, kv.frame { name = "two", tokens = 64 }, kv.frame { name = "both", tokens = 64 },
    kv.requests { name = "plans", tokens = 128, slots = 2, share_prefix = "both" }, kv.segments { name = "mem", tokens = 64 },
    buffer { name = "a", shape = { 4, 7 } }, buffer { name = "b", shape = { 4, 7 } },
  },
  nodes = {
    memory_load { name = "recall", model = "arm", reads = { "past" }, from = "mem", into = "one" },
    prefill { name = "see", model = "arm", reads = { "left/base", "goal" }, writes = "one", after = "recall" },
    action { name = "act", model = "arm", kv = "one", out = "a", deadline = hard { ms = 50 } },
    memory_load { name = "recall2", model = "arm", reads = { "facts" }, from = "mem", into = "two" },
    prefill { name = "see2", model = "arm", reads = { "right/base", "goal" }, writes = "two", after = "recall2" },
    action { name = "act2", model = "arm", kv = "two", out = "b", deadline = hard { ms = 50 } },
    prefill { name = "look", model = "planner", reads = { "left/base", "right/base", "goal" }, writes = "both" },
    decode { name = "plan", model = "planner", kv = "plans", spawn = on_change(), max_tokens = 4, out = stream "plan" },
  },
  capture = capture { batch = { 1, 2 }, k = { 4 }, ratio = { 1.0 } },
}
