-- Of a text with a hard deadline no robot is given anything in its place.
return pipeline {
  name = "refused_text_hard", schema = 1, model = model { arch = "any" }, frame = frame { period_ms = 100 },
  inputs = { image { name = "cam", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } }, text { name = "goal", max_tokens = 8 } },
  resources = { kv.frame { name = "obs", tokens = 64 }, buffer { name = "chunk", shape = { 6, 32 } },
                kv.requests { name = "lang", tokens = 128, slots = 2, share_prefix = "obs" } },
  nodes = {
    prefill { name = "see", reads = { "cam", "state", "goal" }, writes = "obs" },
    action { name = "act", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 50 } },
    decode { name = "say", kv = "lang", spawn = every(1), max_tokens = 4, out = stream "said",
             deadline = hard { ms = 90, on_miss = "stop" } },
    decode { name = "tell", kv = "lang", spawn = every(1), max_tokens = 4, out = stream "told",
             deadline = hard { ms = 90, on_miss = "hold" } },
  },
  capture = capture { batch = { 1 }, k = { 4 } },
}
