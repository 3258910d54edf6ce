-- SmolVLM2 looks at a picture and says what a robot should do next: a picture and a goal in, text out. A picture is
-- one square frame of 64 rows, not split. SmolVLM2-500M: 32 layers, 5 KV heads x 64, 40 KiB of keys and values a token
-- in bf16.
local GOAL <const> = 256
local PLAN <const> = 64
local PICTURE <const> = 64

return pipeline {
  name   = "smolvlm2_planner",
  schema = 1,
  model  = model { arch = "smolvlm", weights = "smolvlm2-500m-video-instruct", dtype = "bf16" },

  frame  = frame { period_ms = 1000, clock = "on_request" },

  inputs = {
    image { name = "image", h = 512, w = 512 },
    text  { name = "goal", max_tokens = GOAL, default = "What should the robot do next?" },
  },

  resources = {
    kv.frame    { name = "context", tokens = PICTURE + GOAL },
    kv.requests { name = "plans", tokens = PICTURE + GOAL + PLAN, slots = 1, share_prefix = "context" },
  },

  nodes = {
    prefill { name = "look", reads = { "image", "goal" }, writes = "context", template = "smolvlm1" },
    decode  { name = "plan", kv = "plans", spawn = every(1), max_tokens = PLAN, out = stream "plan",
              deadline = soft { ms = 10000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1 }, k = { PLAN } },
  memory  = memory { device = "4GiB" },
}
