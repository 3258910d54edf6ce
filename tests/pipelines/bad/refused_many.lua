-- Valid graphs that this release does not run: more of a kind than there is room for.
local models, inputs, resources, nodes = {}, {}, {}, {}
for m = 1, 5 do models[m] = model { name = "m" .. m, arch = "any" } end
inputs[1] = image { name = "base", h = 8, w = 8 }
for i = 1, 10 do
  local own = i <= 9 and i .. "" or nil
  inputs[#inputs + 1] = text { name = "text" .. i, max_tokens = 8 }
  if own then inputs[#inputs + 1] = text { name = "own" .. i, max_tokens = 8 } end
  resources[#resources + 1] = kv.frame { name = "f" .. i, tokens = 64 }
  resources[#resources + 1] = kv.requests { name = "r" .. i, tokens = 128, slots = 2, share_prefix = "f" .. i }
  local m = "m" .. (i <= 5 and i or 5)
  nodes[#nodes + 1] = prefill { name = "see" .. i, model = m, reads = { "base", "text" .. i }, writes = "f" .. i }
  nodes[#nodes + 1] = decode { name = "say" .. i, model = m, kv = "r" .. i, spawn = every(8), max_tokens = 4,
                               prompt = own and "own" .. i, out = stream("said" .. i) }
end
return pipeline {
  name = "refused_many", schema = 1, models = models, frame = frame { period_ms = 1000 },
  inputs = inputs, resources = resources, nodes = nodes,
  capture = capture { batch = { 1, 2 }, k = { 1, 4 } },
}
