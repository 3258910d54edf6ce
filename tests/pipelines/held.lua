-- A planner reads its prompt once for each goal; questions about it come when they come.
return pipeline {
  name = "held", schema = 1, frame = frame { period_ms = 100 },
  models = { arm = model { arch = "pi05_causal" }, planner = model { arch = "qwen2" }, quick = model { arch = "qwen2" } },
  inputs = {
    image { name = "front", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } }, text { name = "prompt", max_tokens = 8 },
    text { name = "goal", max_tokens = 8 }, text { name = "question", max_tokens = 8 },
  },
  resources = {
    kv.frame { name = "obs", tokens = 80 }, kv.frame { name = "context", tokens = 80 },
    kv.requests { name = "answers", tokens = 120, slots = 3, share_prefix = "context" },
    buffer { name = "chunk", shape = { 4, 8 } },
  },
  nodes = {
    prefill { name = "see", model = "arm", reads = { "front", "state", "prompt" }, writes = "obs" },
    action { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 90, on_miss = "hold" } },
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context", spawn = on_change("goal") },
    decode { name = "plan", model = "planner", kv = "answers", spawn = on_change("context"), max_tokens = 6, out = stream "plan" },
    decode { name = "ask", model = "planner", kv = "answers", spawn = on_request(), prompt = "question", max_tokens = 5,
             out = stream "said", draft = { model = "quick", tokens = 2 } },
  },
  capture = capture { batch = { 1, 2, 4 }, k = { 1, 4 }, slices = 3 },
}
