-- OpenVLA-OFT on LIBERO: two pictures, the arm's state and a prompt to 8 actions in one bidirectional
-- forward. Nothing is decoded, so nothing is shared: the whole forward is the frame.
local TEXT <const> = 64                      -- prompt and instruction
local ROWS <const> = 2 * 256 + TEXT + 1 + 8 * 7 + 1 -- pictures, prompt, state, placeholders, end

return pipeline {
  name   = "openvla_oft_libero",
  schema = 1,
  model  = model { arch = "openvla_oft", weights = "openvla-7b-oft-finetuned-libero-spatial", dtype = "bf16" },
  robot  = "robots/openvla_oft_libero.lua",

  frame  = frame { period_ms = 400, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = "observation/image", h = 224, w = 224 },
    image  { name = "observation/wrist_image", h = 224, w = 224 },
    tensor { name = "observation/state", shape = { 8 } },
    text   { name = "prompt", max_tokens = TEXT },
  },

  resources = {
    kv.frame { name = "obs", tokens = ROWS },
    buffer   { name = "chunk", shape = { 8, 7 } },
  },

  nodes = {
    prefill { name = "see", writes = "obs",
              reads = { "observation/image", "observation/wrist_image", "observation/state",
                        "prompt" } },
    action  { name = "act", kv = "obs", out = "chunk",
              deadline = hard { ms = 400, on_miss = "hold", limit = 3 } },
  },

  memory = memory { device = "18GiB" },
  policy = use { name = "default" },
}
