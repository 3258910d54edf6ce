-- OpenVLA-7B with a ring of K stages (ActionFlow): each frame takes one observation in and advances
-- those in flight, in one forward. An action leaves each frame; it is of the observation K - 1 frames
-- ago. Llama-2-7B: 32 layers, 32 KV heads x 128, 512 KiB of keys and values a token in bf16.
local K <const>      = 7                  -- tokens of an action, one a forward
local TEXT <const>   = 64                 -- prompt and instruction; 275 .. 291 rows are usual
local PREFIX <const> = 256 + TEXT         -- a picture is 256 rows

return pipeline {
  name   = "openvla_ring",
  schema = 1,
  model  = model { arch = "openvla", weights = "openvla-7b", dtype = "bf16" },
  robot  = "robots/openvla_bridge.lua",

  frame  = frame { period_ms = 55, clock = "internal", overrun = "skip_next" },

  inputs = {
    image { name = "observation/image", h = 224, w = 224 },
    text  { name = "prompt", max_tokens = TEXT },
  },

  resources = {
    kv.ring { name = "ring", stages = K, tokens = PREFIX + K },
    buffer  { name = "action", shape = { K }, dtype = "i32" },
  },

  nodes = {
    prefill { name = "enter", reads = { "observation/image", "prompt" }, writes = "ring" },
    decode  { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter",
              out = "action", deadline = hard { ms = 55, on_miss = "hold", limit = 3 } },
  },

  capture = capture { depth = { 1, 4, K } },
  memory  = memory { device = "18GiB" },
  policy  = use { name = "actionflow", params = { depth = K } },
}
