-- A planner with a memory of key/value segments: parses and checks fully.
return pipeline {
  name   = "planner",
  schema = 1,
  models = { model { name = "planner", arch = "planner", dtype = "bf16" } },
  frame  = frame { period_ms = 1000, clock = "on_request" },
  inputs = {
    text     { name = "goal",   max_tokens = 128 },
    segments { name = "memory", max_segments = 40, tokens_each = 128 },
  },
  resources = {
    kv.segments { name = "mem", tokens = 40 * 128, stable_steps = 10,
                  tiers = { gpu = "1GiB", host = "24GiB" } },
    kv.frame    { name = "ctx", tokens = 40 * 128 + 128 + 16 },
  },
  nodes = {
    memory_load { name = "recall", reads = { "memory" }, from = "mem", into = "ctx",
                  overlap = "balanced",
                  recompute = { first = 1.0, decay = 0.93, floor = 0.15 } },
    prefill     { name = "ask",  reads = { "goal" }, writes = "ctx", after = "recall" },
    decode      { name = "plan", kv = "ctx", max_tokens = 16, out = stream "plan", when = policy(),
                  deadline = soft { ms = 400, on_miss = "continue" } },
  },
  capture = capture { k = { 16 }, ratio = { 0.15, 0.25, 0.5, 1.0 }, on_miss = "error" },
  memory  = memory { device = "34GiB", host = "24GiB" },
  policy  = use { name = "keep", params = { target_ms = 240, nested = { 1, { a = true } } } },
  guard   = guard { soft_us = 200, hard_us = 1000 },
}
