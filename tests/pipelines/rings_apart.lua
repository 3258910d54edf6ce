-- Sixteen robots with three rings each, of which none shares forwards with another.
local K <const> = 4
local shifts <const> = { "rotate", "device_copy", "rotate" }
local packs <const> = { "packed", "packed", "gather" }
local inputs, resources, nodes = { image { name = "cam", h = 28, w = 28, dtype = "u8" } }, {}, {}
for i = 1, #packs do
  inputs[#inputs + 1] = text { name = "text" .. i, max_tokens = 20 }
  resources[#resources + 1] = kv.ring { name = "ring" .. i, stages = K, tokens = 16 + 20 + K, shift = shifts[i],
                                        pack = packs[i] }
  resources[#resources + 1] = buffer { name = "action" .. i, shape = { K }, dtype = "i32" }
  nodes[#nodes + 1] = prefill { name = "enter" .. i, reads = { "cam", "text" .. i }, writes = "ring" .. i }
  nodes[#nodes + 1] = decode { name = "advance" .. i, kv = prev("ring" .. i), max_tokens = K, pack_with = "enter" .. i,
                               out = "action" .. i, deadline = hard { ms = 50, on_miss = "hold" } }
end
return pipeline {
  name = "rings_apart", schema = 1,
  model = model { arch = "pi05_causal", dtype = "bf16" },
  frame = frame { period_ms = 50, clock = "internal", sessions = 16 },
  inputs = inputs, resources = resources, nodes = nodes,
  capture = capture { depth = { 1, K } },
  policy = use { name = "default" },
}
