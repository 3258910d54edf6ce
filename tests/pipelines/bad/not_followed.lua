-- A value that nothing follows: a partition's priority.
return pipeline {
  name   = "not_followed", schema = 1,
  model  = model { arch = "any" },
  frame  = frame { period_ms = 1000 },
  inputs = { text { name = "goal", max_tokens = 128 },
             segments { name = "memory", max_segments = 4, tokens_each = 8 } },
  resources = {
    kv.segments { name = "mem", tokens = 64, tiers = { host = "1MiB" } },
    kv.frame    { name = "ctx", tokens = 200 },
    kv.requests { name = "answers", tokens = 220, slots = 16, share_prefix = "ctx" },
  },
  nodes = {
    memory_load { name = "recall", reads = { "memory" }, from = "mem", into = "ctx" },
    prefill     { name = "ask", reads = { "goal" }, writes = "ctx", after = "recall" },
    decode      { name = "plan", kv = "answers", spawn = every(1), max_tokens = 16, out = stream "plan",
                  partition = "bg" },
  },
  partitions = { sm { name = "bg", share = 0.25, priority = "low" } },
  capture = capture { batch = { 1, 2, 3, 4, 6, 8, 12, 16 }, k = { 1, 16 }, ratio = { 1.0 } },
}
