-- A memory_load whose parts do not fit.
return pipeline {
  name   = "planner", schema = 1,
  model  = model { arch = "any" },
  frame  = frame { period_ms = 1000, clock = "on_request" },
  inputs = { text { name = "goal", max_tokens = 128 },
             segments { name = "memory", max_segments = 40, tokens_each = 128 } },
  resources = {
    kv.segments { name = "mem", tokens = 40 * 128, tiers = { gpu = "1GiB", hst = "24GiB" } },
    kv.frame    { name = "ctx", tokens = 40 * 128 + 144 },
  },
  nodes = {
    memory_load { name = "recall", reads = { "goal" }, from = "ctx", into = "ctx",
                  recompute = { first = 1.5 } },
    prefill     { name = "ask",  reads = { "goal", "memory" }, writes = "ctx", after = "recall" },
    decode      { name = "plan", kv = "ctx", max_tokens = 16, out = stream "plan" },
  },
  capture = capture { k = { 16 } },
}
