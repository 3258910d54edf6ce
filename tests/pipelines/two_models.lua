-- A small arm with language of its own, and a planner beside it.
local TXT <const>, GOAL <const>, PLAN <const> = 12, 160, 10
local OBS <const> = 48 + TXT
return pipeline {
  name   = "two_models",
  schema = 1,
  models = {
    arm     = model { arch = "pi05", dtype = "f32" },
    planner = model { arch = "qwen2", dtype = "bf16" },
  },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image  { name = "cam", h = 56, w = 56, optional = true },
    tensor { name = "state", shape = { 8 } },
    text   { name = "goal", max_tokens = GOAL },
    text   { name = "prompt", max_tokens = TXT },
  },
  resources = {
    kv.frame    { name = "context", tokens = GOAL },
    kv.requests { name = "plans", tokens = GOAL + PLAN, slots = 2, share_prefix = "context" },
    kv.frame    { name = "obs",  tokens = OBS },
    kv.requests { name = "lang", tokens = OBS + 6, slots = 3, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 6, 32 } },
  },
  nodes = {
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context",
              template = "chatml" },
    decode  { name = "plan", model = "planner", kv = "plans", spawn = on_change(), supersede = true,
              max_tokens = PLAN, out = stream "plan" },
    decode  { name = "remark", model = "planner", kv = "plans", spawn = on_request(),
              max_tokens = 5, out = stream "remarks" },
    prefill { name = "see", model = "arm", reads = { "cam", "state", "prompt" }, writes = "obs" },
    action  { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk",
              deadline = hard { ms = 900 } },
    decode  { name = "talk", model = "arm", kv = "lang", spawn = every(2), max_tokens = 6,
              out = stream "talk" },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
