-- Golden schedule 'ring_k7_copy', which other tests run.
local K <const> = 7
return pipeline {
  name   = "ring_k7_copy",
  schema = 1,
  model  = model { arch = "openvla", weights = "openvla-7b", dtype = "bf16" },
  frame  = frame { period_ms = 1000, clock = "internal" },
  inputs = {
    image { name = "cam", h = 224, w = 224, dtype = "u8" },
    text  { name = "instruction", max_tokens = 24 },
  },
  resources = {
    kv.ring { name = "ring", stages = K, tokens = 280 + K, shift = "device_copy", on_change = "flush" },
    buffer  { name = "action", shape = { K }, dtype = "i32" },
  },
  nodes = {
    prefill { name = "enter", reads = { "cam", "instruction" }, writes = "ring" },
    decode  { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter", out = "action",
              deadline = hard { ms = 1000, on_miss = "hold" } },
  },
  capture = capture { depth = { 1, 7 }, on_miss = "error" },
  memory  = memory { device = "18GiB" },
  policy  = use { name = "actionflow", params = { depth = K } },
}
