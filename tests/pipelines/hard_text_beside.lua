-- Two arms in a frame. The first has to have said something by the end of it, and something short
-- before it acts.
local TXT <const> = 12
local OBS <const> = 48 + TXT
return pipeline {
  name   = "hard_text_beside",
  schema = 1,
  models = {
    left  = model { arch = "pi05", dtype = "f32" },
    right = model { arch = "pi05", dtype = "f32" },
  },
  frame  = frame { period_ms = 2000 },
  inputs = {
    image  { name = "cam", h = 56, w = 56, optional = true },
    tensor { name = "state", shape = { 8 } },
    text   { name = "prompt", max_tokens = TXT },
  },
  resources = {
    kv.frame    { name = "obs",  tokens = OBS },
    kv.frame    { name = "other", tokens = OBS },
    kv.requests { name = "lang", tokens = OBS + 6, slots = 4, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 6, 32 } },
    buffer      { name = "others", shape = { 6, 32 } },
  },
  nodes = {
    prefill { name = "see", model = "left", reads = { "cam", "state", "prompt" }, writes = "obs" },
    decode  { name = "goal", model = "left", kv = "lang", spawn = every(1), max_tokens = 3, out = stream "goal",
              deadline = hard { ms = 400 } },
    action  { name = "act", model = "left", kv = "obs", after = "goal", steps = 2, out = "chunk",
              deadline = hard { ms = 600 } },
    decode  { name = "talk", model = "left", kv = "lang", spawn = every(1), max_tokens = 6, out = stream "talk",
              deadline = hard { ms = 1300 } },
    prefill { name = "look", model = "right", reads = { "cam", "state", "prompt" }, writes = "other" },
    action  { name = "move", model = "right", kv = "other", steps = 2, out = "others", deadline = hard { ms = 700 } },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2, 3 } },
}
