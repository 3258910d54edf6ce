-- The answers of chains.lua alone.
local ASK <const>, NEW <const> = 9, 6
return pipeline {
  name   = "chains_answer",
  schema = 1,
  models = { arm = model { arch = "pi05_causal", dtype = "f32" } },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image { name = "cam", h = 56, w = 56 },
    image { name = "side", h = 56, w = 56 },
    text  { name = "question", max_tokens = ASK },
  },
  resources = {
    kv.frame    { name = "asked", tokens = 32 + ASK },
    kv.requests { name = "answers", tokens = 32 + ASK + NEW, slots = 4, share_prefix = "asked" },
  },
  nodes = {
    prefill { name = "look", reads = { "cam", "side", "question" }, writes = "asked" },
    decode  { name = "answer", kv = "answers", spawn = every(2), max_tokens = NEW,
              out = stream "answer" },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
