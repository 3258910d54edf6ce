-- The table's planner and its memory alone, which read and say what they do in table.lua: both questions are asked of every
-- observation, and what it was and what it said are put by who asks (words.py).
local FACTS <const> = 96         -- as table.lua
local GOAL <const> = 40
local ASKED <const> = FACTS + GOAL + 24
local ANSWER <const> = 28

return pipeline {
  name   = "table_words",
  schema = 1,
  model  = model { arch = "qwen2", weights = "pipelines/checkpoints/table_planner" },
  frame  = frame { period_ms = 100, clock = "on_request" },

  inputs = {
    text     { name = "goal", max_tokens = GOAL },
    segments { name = "memory", max_segments = 8, tokens_each = ANSWER },
  },

  resources = {
    kv.segments { name = "mem", tokens = FACTS, tiers = { host = "16MiB" } },
    kv.frame    { name = "context", tokens = ASKED },
    kv.requests { name = "plans", tokens = ASKED + ANSWER, slots = 2, share_prefix = "context" },
    kv.segments { name = "log", tokens = FACTS, tiers = { host = "16MiB" } },
    kv.frame    { name = "account", tokens = ASKED },
    kv.requests { name = "reports", tokens = ASKED + ANSWER, slots = 2, share_prefix = "account" },
  },

  nodes = {
    memory_load { name = "recall", reads = { "memory" }, from = "mem", into = "context", order = "as_put",
                  recompute = { first = 1.0, decay = 1.0, floor = 1.0 } },
    prefill { name = "think", reads = { "goal" }, writes = "context", after = "recall", template = "table_next" },
    decode  { name = "choose", kv = "plans", spawn = every(1), max_tokens = 8, out = stream "plan",
              deadline = soft { ms = 60000, on_miss = "continue" } },
    memory_load { name = "recall_log", reads = { "memory" }, from = "log", into = "account", order = "as_put",
                  recompute = { first = 1.0, decay = 1.0, floor = 1.0 } },
    prefill { name = "review", reads = { "goal" }, writes = "account", after = "recall_log", template = "table_did" },
    decode  { name = "tell", kv = "reports", spawn = every(1), max_tokens = ANSWER, out = stream "report",
              deadline = soft { ms = 60000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1, 2 }, k = { 28 }, ratio = { 1.0 } },
}
