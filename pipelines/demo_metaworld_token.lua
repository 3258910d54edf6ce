-- The bundled demo of a ring: an OpenVLA of 0.3 M parameters that presses a sliding button. A drawing of
-- 28 x 28, seven tokens an action. Made by pipelines/checkpoints/metaworld_token/train. With
-- `--set policy.params.depth=7` the ring is full: more actions a second, each of an older picture.
local K <const>    = 7
local TEXT <const> = 32
local ROWS <const> = 16            -- of a picture: 4 of the checkpoint's, 16 of a model of `--size tiny`

return pipeline {
  name   = "demo_metaworld_token",
  schema = 1,
  model  = model { arch = "openvla", weights = "pipelines/checkpoints/metaworld_token" },
  robot  = "robots/metaworld_token.lua",

  frame  = frame { period_ms = 100, clock = "external" },

  inputs = {
    image { name = "observation/image", h = 28, w = 28 },
    text  { name = "prompt", max_tokens = TEXT },
  },

  resources = {
    kv.ring { name = "ring", stages = K, tokens = ROWS + TEXT + K },
    buffer  { name = "action", shape = { K }, dtype = "i32" },
  },

  nodes = {
    prefill { name = "enter", reads = { "observation/image", "prompt" }, writes = "ring" },
    decode  { name = "advance", kv = prev "ring", max_tokens = K, pack_with = "enter", out = "action",
              deadline = hard { ms = 100, on_miss = "hold", limit = 3 } },
  },

  capture = capture { depth = { 1, 2, 3, 4, K } },
  policy  = use { name = "actionflow", params = { depth = 1 } },
}
