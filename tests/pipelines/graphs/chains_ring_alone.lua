-- The ring of chains_ring.lua alone.
local K <const>, TXT <const> = 7, 12
return pipeline {
  name   = "chains_ring_alone",
  schema = 1,
  models = { arm = model { arch = "pi05_causal", dtype = "f32" } },
  frame  = frame { period_ms = 1000 },
  inputs = {
    image { name = "cam", h = 56, w = 56 },
    text  { name = "prompt", max_tokens = TXT },
  },
  resources = {
    kv.ring { name = "ring", stages = K, tokens = 48 + TXT + K, on_change = "keep" },
    buffer  { name = "action", shape = { K }, dtype = "i32" },
  },
  nodes = {
    prefill { name = "enter", reads = { "cam", "prompt" }, writes = "ring" },
    decode  { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter",
              out = "action", deadline = hard { ms = 900 } },
  },
  capture = capture { depth = { 1, 4, K } },
}
