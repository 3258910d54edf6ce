-- Qwen2.5 answers a prompt: text in, text out. A prompt is a frame of its own; answers of several
-- prompts advance together. Qwen2.5-7B-Instruct: 28 layers, 4 KV heads x 128, 56 KiB of keys and
-- values a token in bf16.
local PROMPT <const> = 1024
local ANSWER <const> = 256

return pipeline {
  name   = "qwen_chat",
  schema = 1,
  model  = model { arch = "qwen2", weights = "qwen2.5-7b-instruct", dtype = "bf16" },

  frame  = frame { period_ms = 100, clock = "external", overrun = "skip_next" },

  inputs = { text { name = "prompt", max_tokens = PROMPT } },

  resources = {
    kv.frame    { name = "context", tokens = PROMPT },
    kv.requests { name = "answers", tokens = PROMPT + ANSWER, slots = 4, share_prefix = "context" },
  },

  nodes = {
    prefill { name = "read", reads = { "prompt" }, writes = "context", template = "chatml" },
    decode  { name = "answer", kv = "answers", spawn = on_change(), max_tokens = ANSWER,
              out = stream "answer", deadline = soft { ms = 60000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1, 2, 4 }, k = { 1, 8, 32 } },
  memory  = memory { device = "20GiB" },
}
