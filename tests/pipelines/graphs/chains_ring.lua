-- A ring, and questions about two cameras from a second prefill of its model.
local K <const>, TXT <const>, ASK <const>, NEW <const> = 7, 12, 9, 6
return pipeline {
  name   = "chains_ring",
  schema = 1,
  models = { arm = model { arch = "pi05_causal", dtype = "f32" } },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image { name = "cam", h = 56, w = 56 },
    image { name = "side", h = 56, w = 56 },
    text  { name = "prompt", max_tokens = TXT },
    text  { name = "question", max_tokens = ASK },
  },
  resources = {
    kv.ring     { name = "ring", stages = K, tokens = 48 + TXT + K, on_change = "keep" },
    buffer      { name = "action", shape = { K }, dtype = "i32" },
    kv.frame    { name = "asked", tokens = 32 + ASK },
    kv.requests { name = "answers", tokens = 32 + ASK + NEW, slots = 4, share_prefix = "asked" },
  },
  nodes = {
    prefill { name = "enter", reads = { "cam", "prompt" }, writes = "ring" },
    decode  { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter",
              out = "action", deadline = hard { ms = 900 } },
    prefill { name = "look", reads = { "cam", "side", "question" }, writes = "asked" },
    decode  { name = "answer", kv = "answers", spawn = every(2), max_tokens = NEW,
              out = stream "answer" },
  },
  capture = capture { depth = { 1, 4, K }, batch = { 1, 2 }, k = { 1, 2, 3 } },
}
