-- See the first error: everything else in this file is right.
local TXT <const> = 200
local OBS <const> = 2 * 256 + TXT
return pipeline {
  name   = "arm",
  schema = 1,
  model  = model { arch = "pi05", weights = "pi05_base", dtype = "bf16" },
  frame  = frame { period_ms = 50, clock = "external", overrun = "skip_next" },
  inputs = {
    image  { name = "cam_high", h = 224, w = 224, dtype = "u8" },
    image  { name = "cam_wrist", h = 224, w = 224, dtype = "u8" },
    tensor { name = "state", shape = { 14 }, dtype = "f32" },
    text   { name = "prompt", max_tokens = TXT },
  },
  resources = {
    kv.frame    { name = "obs",  tokens = OBS },
    kv.requests { name = "lang", tokens = OBS + 64, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 50, 32 }, dtype = "f32" },
  },
  nodes = {
    prefill { name = "see", reads = { "cam_high", "cam_wrist", "state", "prompt" },
              writes = "obs" },
    action  { name = "act", kv = "obs", steps = 10, partition = "rt" },
    decode  { name = "talk", kv = "lang", spawn = every(1), max_tokens = 30,
              partition = "bg", },
  },
  partitions = { sm { name = "rt", share = 0.75 },
                 sm { name = "bg", share = 0.25 } },
  capture = capture { batch = { 1, 3, 5, 8 }, k = { 4, 5, 8 }, on_miss = "error" },
  memory  = memory { device = "9GiB" },
  policy  = use { name = "oxygen", params = { k = 5 } },
}
