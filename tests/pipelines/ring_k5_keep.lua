-- Golden schedule 'ring_k5_keep', which other tests run.
local K <const> = 5
return pipeline {
  name   = "ring_k5_keep",
  schema = 1,
  model  = model { arch = "openvla", weights = "openvla-7b", dtype = "bf16" },
  frame  = frame { period_ms = 70, clock = "internal" },
  inputs = {
    image { name = "cam", h = 224, w = 224, dtype = "u8" },
    text  { name = "instruction", max_tokens = 40 },
  },
  resources = {
    kv.ring { name = "ring", stages = K, tokens = 296 + K, shift = "rotate", on_change = "keep" },
    buffer  { name = "action", shape = { K }, dtype = "i32" },
  },
  nodes = {
    prefill { name = "enter", reads = { "cam", "instruction" }, writes = "ring" },
    decode  { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter", out = "action",
              deadline = hard { ms = 70, on_miss = "hold" } },
  },
  capture = capture { depth = { 1, 5 }, on_miss = "error" },
  memory  = memory { device = "18GiB" },
  policy  = use { name = "actionflow", params = { depth = K } },
}
