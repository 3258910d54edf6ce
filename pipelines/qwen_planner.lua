-- Qwen2.5-14B plans with a memory of texts kept as keys and values (KEEP): segments that the goal finds
-- are brought to the prompt, the important ones computed anew, in fewer of them from layer to
-- layer. 48 layers, 8 KV heads x 128: 192 KiB of keys and values a token in bf16.
local SEGMENTS <const> = 40  -- of a prompt
local EACH <const> = 128  -- tokens of a segment, at most
local ALL <const> = 2560  -- tokens of a prompt's segments together
local QUERY <const> = 512 -- beginning and goal
local PLAN <const> = 16

return pipeline {
  name   = "qwen_planner",
  schema = 1,
  model  = model { arch = "qwen2", weights = "qwen2.5-14b-instruct", dtype = "bf16" },
  frame  = frame { period_ms = 1000, clock = "on_request" },

  inputs = {
    text     { name = "goal", max_tokens = 256 },
    segments { name = "memory", max_segments = SEGMENTS, tokens_each = EACH },
  },

  resources = {
    kv.segments { name = "mem", tokens = ALL, stable_steps = 10, store = "planner.memory",
                  tiers = { host = "8GiB", disk = "64GiB" } },
    kv.frame    { name = "ctx", tokens = ALL + QUERY },
    kv.requests { name = "plans", tokens = ALL + QUERY + PLAN, slots = 1, share_prefix = "ctx" },
  },

  nodes = {
    memory_load { name = "recall", reads = { "memory" }, from = "mem", into = "ctx",
                  overlap = "bounded",
                  recompute = { first = 1.0, decay = 0.93, floor = 0.15 } },
    prefill     { name = "ask", reads = { "goal" }, writes = "ctx", after = "recall",
                  template = "planner_memory" },
    decode      { name = "plan", kv = "plans", spawn = on_change(), max_tokens = PLAN,
                  out = stream "plan", deadline = soft { ms = 2000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1 }, k = { PLAN }, ratio = { 0.15, 0.25, 0.5, 1.0 } },
  memory  = memory { device = "40GiB", host = "10GiB" },
  policy  = use { name = "keep", params = { target_ms = 240 } },
}
