local K <const> = 7
return pipeline {
  name = "ring_any", schema = 1,
  model = model { arch = "pi05_causal", dtype = "bf16" },
  frame = frame { period_ms = 50, clock = "internal" },
  inputs = {
    image { name = "cam", h = 28, w = 28, dtype = "u8" },
    text { name = "instruction", max_tokens = 20 },
  },
  resources = {
    kv.ring { name = "ring", stages = K, tokens = 16 + 20 + K },
    buffer { name = "action", shape = { K }, dtype = "i32" },
  },
  nodes = {
    prefill { name = "enter", reads = { "cam", "instruction" }, writes = "ring" },
    decode { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter", out = "action",
             deadline = hard { ms = 50, on_miss = "hold" } },
  },
  capture = capture { depth = { 1, 4, 7 } },
  policy = use { name = "actionflow", params = { depth = K } },
}
