-- A text with a hard deadline, which a policy cannot leave out of a frame.
return pipeline {
  name = "refused_when_hard", schema = 1, model = model { arch = "any" }, frame = frame { period_ms = 100 },
  inputs = { text { name = "goal", max_tokens = 8 } },
  resources = { kv.frame { name = "obs", tokens = 64 },
                kv.requests { name = "lang", tokens = 128, slots = 1, share_prefix = "obs" } },
  nodes = {
    prefill { name = "ask", reads = { "goal" }, writes = "obs" },
    decode { name = "say", kv = "lang", spawn = every(1), max_tokens = 4, out = stream "said", when = policy(),
             deadline = hard { ms = 50 } },
  },
  capture = capture { batch = { 1 }, k = { 4 } },
}
