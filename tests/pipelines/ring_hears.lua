-- A ring whose prompt is what another model has said of the same frame, with a memory in front of it.
local TXT <const> = 12
local OBS <const> = 64 + TXT
return pipeline {
  name   = "ring_hears", schema = 1,
  models = { eye = model { arch = "pi05_causal" }, arm = model { arch = "pi05_causal" } },
  frame  = frame { period_ms = 1000 },
  inputs = { image { name = "cam", h = 56, w = 56 }, text { name = "prompt", max_tokens = TXT, default = "what is there" },
             segments { name = "past", max_segments = 3, tokens_each = 8 } },
  resources = { kv.frame { name = "seen", tokens = OBS },
                kv.requests { name = "lang", tokens = OBS + 6, slots = 1, share_prefix = "seen" },
                kv.segments { name = "mem", tokens = 32 },
                kv.ring { name = "ring", tokens = 120, stages = 3, on_change = "flush" },
                buffer { name = "action", shape = { 3 }, dtype = "i32" } },
  nodes = {
    prefill { name = "look", model = "eye", reads = { "cam", "prompt" }, writes = "seen" },
    decode { name = "say", model = "eye", kv = "lang", spawn = every(1), max_tokens = 4, out = stream "said" },
    memory_load { name = "recall", model = "arm", reads = { "past" }, from = "mem", into = "ring" },
    prefill { name = "enter", model = "arm", reads = { "cam", "said" }, writes = "ring", after = "say" },
    decode { name = "advance", model = "arm", kv = prev "ring", max_tokens = 3, out = "action", deadline = hard { ms = 900 } },
  },
  capture = capture { batch = { 1 }, k = { 1, 4 }, depth = { 1, 3 }, ratio = { 1.0 } },
}
