-- The planner of two_models.lua alone: its frames are its prefills.
local GOAL <const>, PLAN <const> = 160, 10
return pipeline {
  name   = "two_models_planner",
  schema = 1,
  model  = model { arch = "qwen2", dtype = "bf16" },
  frame  = frame { period_ms = 1000 },
  inputs = { text { name = "goal", max_tokens = GOAL } },
  resources = {
    kv.frame    { name = "context", tokens = GOAL },
    kv.requests { name = "plans", tokens = GOAL + PLAN, slots = 2, share_prefix = "context" },
  },
  nodes = {
    prefill { name = "think", reads = { "goal" }, writes = "context" },
    decode  { name = "plan", kv = "plans", spawn = on_change(), supersede = true,
              max_tokens = PLAN, out = stream "plan" },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
