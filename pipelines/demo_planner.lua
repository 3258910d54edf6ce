-- The bundled planner: a Qwen2 of 1 M parameters that knows where things are from a memory of facts, and what to do
-- there. The prompt is the whole memory and a question; the answer is what follows. Made by
-- pipelines/checkpoints/planner/train.
local PROMPT <const> = 192
local ANSWER <const> = 6

return pipeline {
  name   = "demo_planner",
  schema = 1,
  model  = model { arch = "qwen2", weights = "pipelines/checkpoints/planner" },

  frame  = frame { period_ms = 100, clock = "external" },

  inputs = { text { name = "prompt", max_tokens = PROMPT } },

  resources = {
    kv.frame    { name = "memory", tokens = PROMPT },
    kv.requests { name = "answers", tokens = PROMPT + ANSWER, slots = 4, share_prefix = "memory" },
  },

  nodes = {
    prefill { name = "read", reads = { "prompt" }, writes = "memory", template = "bare" },
    decode  { name = "answer", kv = "answers", spawn = every(1), max_tokens = ANSWER,
              out = stream "answer", deadline = soft { ms = 2000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1, 2, 3 }, k = { 3, 6 } },
}
