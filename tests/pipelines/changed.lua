-- Text that is born when the instruction changes, and ends the one before.
return pipeline {
  name   = "changed",
  schema = 1,
  model  = model { arch = "pi05", weights = "pi05_base", dtype = "bf16" },
  frame  = frame { period_ms = 600, clock = "internal", overrun = "skip_next" },
  inputs = {
    image  { name = "cam0", h = 224, w = 224, dtype = "u8" },
    image  { name = "cam1", h = 224, w = 224, dtype = "u8" },
    image  { name = "cam2", h = 224, w = 224, dtype = "u8" },
    tensor { name = "state", shape = { 14 }, dtype = "f32" },
    text   { name = "prompt", max_tokens = 200 },
  },
  resources = {
    kv.frame    { name = "obs",  tokens = 968 },
    kv.requests { name = "lang", tokens = 988, slots = 8, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 10, 32 }, dtype = "f32" },
  },
  nodes = {
    prefill { name = "see", reads = { "cam0", "cam1", "cam2", "state", "prompt" }, writes = "obs" },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 600, on_miss = "hold" } },
    decode  { name = "talk", kv = "lang", spawn = on_change(), supersede = true, max_tokens = 20,
              out = stream "narration" },
  },
  capture = capture { batch = { 1, 2, 3, 4, 5, 6, 7, 8 }, k = { 5, 20 }, on_miss = "error" },
  memory  = memory { device = "9GiB" },
  policy  = use { name = "oxygen" },
}
