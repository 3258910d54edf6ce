-- Triggers: values that a node cannot start on.
return pipeline {
  name   = "spawn_value",
  schema = 1,
  models = { arm = model { arch = "pi05" }, planner = model { arch = "qwen2" } },
  frame  = frame { period_ms = 50 },
  inputs = { tensor { name = "state", shape = { 14 } }, text { name = "prompt", max_tokens = 20 },
             text { name = "goal", max_tokens = 20 } },
  resources = {
    kv.frame    { name = "obs",  tokens = 600 },
    buffer      { name = "chunk", shape = { 50, 32 } },
    kv.frame    { name = "context", tokens = 20 },
    kv.requests { name = "plans", tokens = 60, slots = 32, share_prefix = "context" },
  },
  nodes = {
    prefill { name = "see", model = "arm", reads = { "state", "prompt" }, writes = "obs" },
    action  { name = "act", model = "arm", kv = "obs", out = "chunk", deadline = hard { ms = 45 } },
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context", spawn = every(10) },
    decode  { name = "plan", model = "planner", kv = "plans", spawn = on_change("contxt"), max_tokens = 30,
              out = stream "plan" },
    decode  { name = "more", model = "planner", kv = "plans", spawn = on_change("obs"), max_tokens = 30,
              out = stream "more" },
  },
  capture = capture { batch = { 1, 2, 3, 4, 5, 6, 7, 8 }, k = { 30 } },
}
