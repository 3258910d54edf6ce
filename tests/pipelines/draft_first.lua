-- A sub-task that a small model proposes, said before the actions that stand on it, and a hard text
-- behind them whose tokens the same model proposes.
local TXT <const> = 12
local OBS <const> = 64 + TXT
return pipeline {
  name   = "draft_first", schema = 1,
  models = { arm = model { arch = "pi05_causal" }, small = model { arch = "pi05_causal" } },
  frame  = frame { period_ms = 1000 },
  inputs = { image { name = "cam", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } },
             text { name = "prompt", max_tokens = TXT, default = "what is there" } },
  resources = { kv.frame { name = "obs", tokens = OBS },
                kv.requests { name = "lang", tokens = OBS + 8, slots = 2, share_prefix = "obs" },
                buffer { name = "chunk", shape = { 4, 8 } } },
  nodes = {
    prefill { name = "see", model = "arm", reads = { "cam", "state", "prompt" }, writes = "obs" },
    decode { name = "say", model = "arm", kv = "lang", spawn = every(1), max_tokens = 6, out = stream "said",
             draft = { model = "small", tokens = 3 } },
    action { name = "act", model = "arm", kv = "lang", after = "say", steps = 2, out = "chunk", deadline = hard { ms = 500 } },
    decode { name = "tell", model = "arm", kv = "lang", spawn = every(2), max_tokens = 4, out = stream "told",
             draft = { model = "small", tokens = 3 }, deadline = hard { ms = 900 } },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 2 }, slices = 2 },
}
