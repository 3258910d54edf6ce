return pipeline { name = "robots_both", schema = 1, model = model { arch = "pi05" }, frame = frame { period_ms = 50 },
  robot = "robots/libero.lua", robots = { ["left/"] = "robots/libero.lua", right = 1, none = "robots/none.lua" },
  inputs = { text { name = "prompt", max_tokens = 200 } },
  resources = { kv.frame { name = "obs", tokens = 456 }, buffer { name = "chunk", shape = { 10, 32 } } },
  nodes = { prefill { name = "see", reads = { "prompt" }, writes = "obs" },
            action { name = "act", kv = "obs", out = "chunk", deadline = hard { ms = 45 } } } }
