-- A ring has no requests that could end each other.
local K <const> = 7
return pipeline {
  name   = "supersede",
  schema = 1,
  model  = model { arch = "openvla", weights = "openvla-7b", dtype = "bf16" },
  frame  = frame { period_ms = 1000, clock = "internal" },
  inputs = {
    image { name = "cam", h = 224, w = 224, dtype = "u8" },
    text  { name = "instruction", max_tokens = 34 },
  },
  resources = {
    kv.ring { name = "ring", stages = K, tokens = 290 + K, shift = "rotate", on_change = "flush" },
    buffer  { name = "action", shape = { K }, dtype = "i32" },
  },
  nodes = {
    prefill { name = "enter", reads = { "cam", "instruction" }, writes = "ring" },
    decode  { name = "advance", kv = prev "ring", max_tokens = K, supersede = true, pack_with = "enter", out = "action",
              deadline = hard { ms = 1000, on_miss = "hold" } },
  },
  capture = capture { depth = { 1, 7 }, on_miss = "error" },
  memory  = memory { device = "18GiB" },
  policy  = use { name = "actionflow", params = { depth = K } },
}
