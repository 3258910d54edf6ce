-- The ring of `tectum bench --suite actionflow`, not for robots. The suite sets stages, lengths,
-- shift and pack over it, and decides the depth itself.
local K <const>, TEXT <const> = 7, 34
return pipeline {
  name = "ring", schema = 1,
  model = model { arch = "openvla", dtype = "bf16" },
  frame = frame { period_ms = 50, clock = "internal" },
  inputs = {
    image { name = "image", h = 224, w = 224, dtype = "u8" },
    text { name = "instruction", max_tokens = TEXT },
  },
  resources = {
    kv.ring { name = "ring", stages = K, tokens = 256 + TEXT + K },
    buffer { name = "action", shape = { K }, dtype = "i32" },
  },
  nodes = {
    prefill { name = "enter", reads = { "image", "instruction" }, writes = "ring" },
    decode { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter", out = "action",
             deadline = hard { ms = 50, on_miss = "hold" } },
  },
  capture = capture { depth = { 1, K } },
}
