-- A memory that waits for the prefill in whose prompt it stands; another one of that prompt waits for it.
return pipeline {
  name   = "waits", schema = 1,
  model  = model { arch = "any" },
  frame  = frame { period_ms = 1000, clock = "on_request" },
  inputs = { text { name = "goal", max_tokens = 64 },
             segments { name = "past", max_segments = 2, tokens_each = 8 },
             segments { name = "notes", max_segments = 2, tokens_each = 8 } },
  resources = { kv.segments { name = "mem", tokens = 16 }, kv.segments { name = "book", tokens = 16 },
                kv.frame { name = "ctx", tokens = 96 } },
  nodes = {
    memory_load { name = "recall", reads = { "past" }, from = "mem", into = "ctx", after = "ask" },
    memory_load { name = "more", reads = { "notes" }, from = "book", into = "ctx", after = "recall" },
    prefill { name = "ask", reads = { "goal" }, writes = "ctx" },
    decode  { name = "plan", kv = "ctx", max_tokens = 16, out = stream "plan" },
  },
  capture = capture { k = { 16 }, ratio = { 1.0 } },
}
