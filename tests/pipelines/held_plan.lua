-- The arm's prompt is made where the planner's sentence is new; it acts, and tells, on the newest one.
return pipeline {
  name = "held_plan", schema = 1, frame = frame { period_ms = 100 },
  models = { arm = model { arch = "pi05_causal" }, planner = model { arch = "qwen2" } },
  inputs = {
    image { name = "front", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } }, text { name = "goal", max_tokens = 8 },
  },
  resources = {
    kv.frame { name = "obs", tokens = 80 }, kv.frame { name = "context", tokens = 80 },
    kv.requests { name = "answers", tokens = 120, slots = 1, share_prefix = "context" },
    kv.requests { name = "lang", tokens = 120, slots = 2, share_prefix = "obs" },
    buffer { name = "chunk", shape = { 4, 8 } },
  },
  nodes = {
    prefill { name = "see", model = "arm", reads = { "front", "state", "plan" }, writes = "obs", spawn = on_change("plan") },
    action { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 90, on_miss = "hold" } },
    decode { name = "tell", model = "arm", kv = "lang", spawn = on_change("obs"), max_tokens = 4, out = stream "told" },
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context" },
    decode { name = "plan", model = "planner", kv = "answers", spawn = every(4), max_tokens = 6,
             out = stream { name = "plan", default = "stay" } },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 4 }, slices = 3 },
}
