-- A ring that is read in the frame that fills it.
local K <const> = 7
return pipeline {
  name   = "ring", schema = 1,
  model  = model { arch = "any" },
  frame  = frame { period_ms = 55 },
  inputs = { image { name = "cam", h = 224, w = 224 }, text { name = "say", max_tokens = 34 } },
  resources = {
    kv.ring { name = "ring", stages = K, tokens = 290 + K },
    buffer  { name = "out", shape = { K }, dtype = "i32" },
  },
  nodes = {
    prefill { name = "enter", reads = { "cam", "say" }, writes = "ring" },
    decode  { name = "advance", kv = "ring", max_tokens = K, pack_with = "enter",
              out = "out", deadline = hard { ms = 55 } },
  },
  capture = capture { depth = { 1, K } },
}
