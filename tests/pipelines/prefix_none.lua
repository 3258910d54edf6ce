-- The golden demo's model with a robot of its own; the base of prefix.lua, where first actions may
-- be given.
return pipeline {
  name   = "prefix",
  schema = 1,
  model  = model { arch = "pi05", weights = "tests/golden/demo/episodes/checkpoint" },
  robot  = {
    name    = "sawyer",
    cameras = {
      { slot = "base_0_rgb", input = "image" },
      { slot = "left_wrist_0_rgb", input = "wrist_image" },
      { slot = "right_wrist_0_rgb" },
    },
    resize  = "none",
    state   = { inputs = { { input = "state", size = 4 } } },
    actions = { size = 4 },
    norm    = { mode = "quantile", asset = "metaworld" },
    prompt  = { template = "with_state", state = true, max_tokens = 32 },
  },
  frame  = frame { period_ms = 100, clock = "external" },
  inputs = {
    image  { name = "image", h = 64, w = 64 },
    image  { name = "wrist_image", h = 64, w = 64 },
    tensor { name = "state", shape = { 4 } },
    text   { name = "prompt", max_tokens = 32 },
  },
  resources = {
    kv.frame    { name = "obs",  tokens = 64 },
    kv.requests { name = "lang", tokens = 76, slots = 4, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 16, 4 } },
  },
  nodes = {
    prefill { name = "see", reads = { "image", "wrist_image", "state", "prompt" },
              writes = "obs" },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 90, on_miss = "hold" } },
    decode  { name = "talk", kv = "lang", spawn = every(1), max_tokens = 12,
              out = stream "narration", deadline = soft { ms = 2000, on_miss = "shed" } },
  },
  capture = capture { batch = { 1, 2, 3, 4 }, k = { 3, 4, 6, 12 } },
}
