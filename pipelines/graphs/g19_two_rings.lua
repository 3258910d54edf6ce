-- Two robots on one OpenVLA: a ring each, rows of both in one packed forward where a frame advances
-- both.
return extend("openvla_ring.lua", { name = "g19_two_rings",
  robot  = without "robot", robots = { a = "robots/openvla_bridge.lua", b = "robots/openvla_bridge.lua" },
  inputs = { image { name = "a/observation/image", h = 224, w = 224 }, text { name = "a/prompt", max_tokens = 64 },
             image { name = "b/observation/image", h = 224, w = 224 }, text { name = "b/prompt", max_tokens = 64 },
             without "observation/image", without "prompt" },
  resources = { kv.ring { name = "ring2", stages = 7, tokens = 327 }, buffer { name = "action2", shape = { 7 }, dtype = "i32" } },
  nodes = { prefill { name = "enter", reads = { "a/observation/image", "a/prompt" } },
            prefill { name = "enter2", reads = { "b/observation/image", "b/prompt" }, writes = "ring2" },
            decode { name = "advance2", kv = prev "ring2", max_tokens = 7, pack_with = "enter2", out = "action2",
                     deadline = hard { ms = 55, on_miss = "hold", limit = 3 } } } })
