-- A controller and a planner on one device: pi0.5 moves the arm by a hard deadline in every frame,
-- Qwen2.5 reads a long goal and says what to do next in the time that is left. Its prefill is many
-- times as long as that: it runs in slices, layer by layer. Qwen2.5-1.5B: 28 layers, 2 KV heads x 128.
local TXT_TOKENS <const> = 200
local OBS_TOKENS <const> = 2 * 256 + TXT_TOKENS
local GOAL <const> = 1024
local PLAN <const> = 48

return pipeline {
  name   = "planner_and_arm",
  schema = 1,
  models = {
    arm     = model { arch = "pi05", weights = "pi05_libero", dtype = "bf16", round = "mixed" },
    planner = model { arch = "qwen2", weights = "qwen2.5-1.5b-instruct", dtype = "bf16" },
  },
  robot  = "robots/libero.lua",

  frame  = frame { period_ms = 100, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = "observation/image", h = 224, w = 224 },
    image  { name = "observation/wrist_image", h = 224, w = 224 },
    tensor { name = "observation/state", shape = { 8 } },
    text   { name = "prompt", max_tokens = TXT_TOKENS },
    text   { name = "goal", max_tokens = GOAL, default = "Say what the robot should do next." },
  },

  resources = {
    kv.frame    { name = "obs",     tokens = OBS_TOKENS },
    buffer      { name = "chunk",   shape = { 10, 32 } },
    kv.frame    { name = "context", tokens = GOAL },
    kv.requests { name = "plans",   tokens = GOAL + PLAN, slots = 2, share_prefix = "context" },
  },

  nodes = {
    prefill { name = "see", model = "arm", writes = "obs",
              reads = { "observation/image", "observation/wrist_image", "observation/state",
                        "prompt" } },
    action  { name = "act", model = "arm", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 90, on_miss = "hold", limit = 3 } },
    -- A new goal ends the plan for the old one, also while its prefill is under way.
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context",
              template = "chatml" },
    decode  { name = "plan", model = "planner", kv = "plans", spawn = on_change(), supersede = true,
              max_tokens = PLAN, out = stream "plan",
              deadline = soft { ms = 10000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1, 2 }, k = { 1, 2, 4 } },
  memory  = memory { device = "14GiB" },
  policy  = use { name = "fill", params = { k = 2 } },
}
