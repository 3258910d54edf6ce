-- A ring whose robot says something about every picture, and an arm that waits for it.
return extend("ring.lua", {
  name = "ring_first", model = without "model",
  models = { eye = model { arch = "pi05_causal" }, arm = model { arch = "pi05" } },
  inputs = { image { name = "front", h = 56, w = 56 }, tensor { name = "state", shape = { 8 } } },
  resources = { kv.requests { name = "say", tokens = 60, slots = 4, share_prefix = "ring" },
                kv.frame { name = "obs", tokens = 80 }, buffer { name = "chunk", shape = { 4, 8 } } },
  nodes = { prefill { name = "enter", model = "eye" }, decode { name = "advance", model = "eye" },
            decode { name = "talk", model = "eye", kv = "say", spawn = every(1), max_tokens = 4,
                     out = stream { name = "talk", default = "stay" } },
            prefill { name = "see", model = "arm", reads = { "front", "state", "talk" }, writes = "obs", after = "talk" },
            action { name = "act", model = "arm", kv = "obs", steps = 2, out = "chunk", deadline = hard { ms = 50, on_miss = "hold" } } },
  capture = { batch = { 1, 2 }, k = { 1, 4 } },
})
