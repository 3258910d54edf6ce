-- text.lua - a text model read by itself: the prompt of the rows prefill and decode (tools/bench_peers).
local PROMPT <const> = 532
local ANSWER <const> = 64

return pipeline {
  name   = "peers_text",
  schema = 1,
  model  = model { arch = "llama", weights = "none", dtype = "bf16" },

  frame  = frame { period_ms = 100, clock = "external", overrun = "skip_next" },

  inputs = { text { name = "prompt", max_tokens = PROMPT } },

  resources = {
    kv.frame    { name = "context", tokens = PROMPT },
    kv.requests { name = "answers", tokens = PROMPT + ANSWER, slots = 8, share_prefix = "context" },
  },

  nodes = {
    prefill { name = "read", reads = { "prompt" }, writes = "context", template = "bare" },
    decode  { name = "answer", kv = "answers", spawn = on_change(), max_tokens = ANSWER,
              out = stream "answer", deadline = soft { ms = 6000000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1, 5, 8 }, k = { 1, 8 } },
  memory  = memory { device = "8GiB" },
}
