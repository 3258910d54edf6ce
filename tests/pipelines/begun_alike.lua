-- Two arms on one prompt, and two plans on another: their prefills are one each, however it is written what begins them.
return pipeline {
  name = "begun_alike", schema = 1, frame = frame { period_ms = 100 },
  models = { arm = model { arch = "pi05_causal" }, planner = model { arch = "qwen2" } },
  inputs = {
    image { name = "front", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } }, text { name = "prompt", max_tokens = 8 },
    text { name = "goal", max_tokens = 8 },
  },
  resources = {
    kv.frame { name = "obs", tokens = 80 }, kv.frame { name = "obs2", tokens = 80 },
    kv.frame { name = "context", tokens = 80 }, kv.frame { name = "context2", tokens = 80 },
    kv.requests { name = "plans", tokens = 120, slots = 2, share_prefix = "context" },
    kv.requests { name = "plans2", tokens = 120, slots = 2, share_prefix = "context2" },
    buffer { name = "chunk", shape = { 4, 8 } }, buffer { name = "chunk2", shape = { 4, 8 } },
  },
  nodes = {
    prefill { name = "see", model = "arm", reads = { "front", "state", "prompt" }, writes = "obs" },
    action { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 90, on_miss = "hold" } },
    prefill { name = "see2", model = "arm", reads = { "front", "state", "prompt" }, writes = "obs2", spawn = every(1) },
    action { name = "act2", model = "arm", kv = "obs2", steps = 1, out = "chunk2", deadline = hard { ms = 90, on_miss = "hold" } },
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context", spawn = on_change("goal") },
    decode { name = "plan", model = "planner", kv = "plans", spawn = on_change("context"), max_tokens = 6, out = stream "plan" },
    prefill { name = "think2", model = "planner", reads = { "goal" }, writes = "context2", spawn = on_change() },
    decode { name = "plan2", model = "planner", kv = "plans2", spawn = on_change("context2"), max_tokens = 4, out = stream "plan2" },
  },
  capture = capture { batch = { 1, 2, 4 }, k = { 1, 4 }, slices = 3 },
}
