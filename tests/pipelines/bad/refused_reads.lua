-- More texts in a prompt than there is room for.
local inputs, reads = {}, {}
for i = 1, 9 do
  reads[i] = "text" .. i
  inputs[i] = text { name = reads[i], max_tokens = 4 }
end
return pipeline {
  name = "refused_reads", schema = 1, models = { main = model { arch = "any" } }, frame = frame { period_ms = 100 },
  inputs = inputs,
  resources = { kv.frame { name = "obs", tokens = 64 }, kv.requests { name = "lang", tokens = 80, slots = 1, share_prefix = "obs" } },
  nodes = {
    prefill { name = "see", reads = reads, writes = "obs" },
    decode { name = "say", kv = "lang", spawn = every(1), max_tokens = 4, out = stream "said" },
  },
  capture = capture { batch = { 1 }, k = { 4 } },
}
