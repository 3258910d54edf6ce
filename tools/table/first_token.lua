-- The table's planner alone, with a memory of up to 1000 facts: how long its first token takes (first_token.py).
local SEGMENTS <const> = 1000
local EACH <const> = 5           -- tokens of a fact, at most
local FACTS <const> = SEGMENTS * EACH
local GOAL <const> = 40

return pipeline {
  name   = "table_first_token",
  schema = 1,
  model  = model { arch = "qwen2", weights = "pipelines/checkpoints/table_planner" },
  frame  = frame { period_ms = 1000, clock = "on_request" },

  inputs = {
    text     { name = "goal", max_tokens = GOAL },
    segments { name = "memory", max_segments = SEGMENTS, tokens_each = EACH },
  },

  resources = {
    kv.segments { name = "mem", tokens = FACTS, tiers = { host = "256MiB" } },
    kv.frame    { name = "context", tokens = FACTS + GOAL + 24 },
    kv.requests { name = "plans", tokens = FACTS + GOAL + 25, slots = 2, share_prefix = "context" },
  },

  nodes = {
    memory_load { name = "recall", reads = { "memory" }, from = "mem", into = "context", order = "as_put",
                  recompute = { first = 1.0, decay = 1.0, floor = 1.0 } },
    prefill { name = "think", reads = { "goal" }, writes = "context", after = "recall", template = "table_next" },
    decode  { name = "choose", kv = "plans", spawn = every(1), max_tokens = 1, out = stream "plan",
              deadline = soft { ms = 60000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1 }, k = { 1 }, ratio = { 1.0 } },
}
