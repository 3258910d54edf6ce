-- Remember nodes that nothing can come of: no such stream, no memory, one key twice, a text too long,
-- another model than the memory's. A recall at another rate than its prefill.
return pipeline {
  name   = "keeper", schema = 1,
  models = { m = model { arch = "any" }, other = model { arch = "any" } },
  frame  = frame { period_ms = 1000, clock = "on_request" },
  inputs = { text { name = "goal", max_tokens = 128 },
             segments { name = "memory", max_segments = 4, tokens_each = 8 } },
  resources = {
    kv.segments { name = "mem", tokens = 64 },
    kv.segments { name = "unread", tokens = 64 },
    kv.frame    { name = "ctx", tokens = 200 },
    kv.requests { name = "answers", tokens = 220, slots = 2, share_prefix = "ctx" },
  },
  nodes = {
    memory_load { name = "recall", model = "m", spawn = every(3), reads = { "memory" }, from = "mem", into = "ctx" },
    prefill     { name = "ask", model = "m", reads = { "goal" }, writes = "ctx", after = "recall" },
    decode      { name = "plan", model = "m", kv = "answers", spawn = every(1), max_tokens = 16, out = stream "plan" },
    remember    { name = "long", model = "other", reads = { "plan" }, into = "mem" },
    remember    { name = "again", reads = { "plam" }, into = "mem", key = "long" },
    remember    { name = "lost", reads = { "plan" }, into = "unread" },
    remember    { name = "where", reads = { "plan" }, into = "ctx" },
  },
  capture = capture { batch = { 1 }, k = { 16 }, ratio = { 1.0 } },
}
