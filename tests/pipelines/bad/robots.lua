-- Three robots by name: an input of none, an action on two, one that nothing reads.
return pipeline { name = "robots", schema = 1, model = model { arch = "pi05" }, frame = frame { period_ms = 50 },
  robots = { left = "robots/libero.lua", right = "robots/libero.lua", rest = "robots/libero.lua" },
  inputs = { image { name = "observation/image", h = 224, w = 224 }, tensor { name = "left/observation/state", shape = { 8 } },
             tensor { name = "right/observation/state", shape = { 8 } }, text { name = "left/prompt", max_tokens = 200 } },
  resources = { kv.frame { name = "obs", tokens = 456 }, buffer { name = "chunk", shape = { 10, 32 } } },
  nodes = { prefill { name = "see", reads = { "observation/image", "left/observation/state", "right/observation/state", "left/prompt" },
                      writes = "obs" },
            action { name = "act", kv = "obs", out = "chunk", deadline = hard { ms = 45 } } } }
