-- Actions on keys of texts that nobody makes, that may not be there, and with a prefix that is not theirs.
return pipeline {
  name = "text_keys", schema = 1, model = model { arch = "any" }, frame = frame { period_ms = 100 },
  inputs = { image { name = "base", h = 8, w = 8 }, text { name = "prompt", max_tokens = 8 }, text { name = "goal", max_tokens = 8 } },
  resources = {
    kv.frame { name = "obs", tokens = 64 }, kv.frame { name = "high", tokens = 64 },
    kv.requests { name = "lang", tokens = 128, slots = 2, share_prefix = "obs" },
    kv.requests { name = "mute", tokens = 128, slots = 2, share_prefix = "high" },
    buffer { name = "a", shape = { 4, 7 } }, buffer { name = "b", shape = { 4, 7 } },
    buffer { name = "c", shape = { 4, 7 } }, buffer { name = "d", shape = { 4, 7 } }, buffer { name = "e", shape = { 4, 7 } },
  },
  nodes = {
    prefill { name = "see", reads = { "base", "prompt" }, writes = "obs" },
    prefill { name = "look", reads = { "base", "goal" }, writes = "high" },
    decode { name = "say", kv = "lang", spawn = every(4), max_tokens = 4, out = stream "said" },
    decode { name = "answer", kv = "lang", spawn = on_request(), max_tokens = 4, out = stream "answer" },
    action { name = "never", kv = "mute", out = "a", deadline = hard { ms = 50 } },
    action { name = "early", kv = "lang", out = "b", deadline = hard { ms = 50 } },
    action { name = "asked", kv = "lang", after = "answer", out = "c", deadline = hard { ms = 50 } },
    action { name = "plain", kv = "obs", or_kv = "obs", out = "d", deadline = hard { ms = 50 } },
    action { name = "other", kv = "lang", or_kv = "high", out = "e", deadline = hard { ms = 50 } },
  },
  capture = capture { batch = { 1, 2 }, k = { 4 } },
}
