-- What a pipeline file may compute: functions, loops, include, a table used twice, prev.
local cameras = include("cameras.lua")
local inputs, reads = {}, {}
for i, name in ipairs(cameras) do
  inputs[i] = image { name = name, h = 64, w = 64 }
  reads[i] = name
end
inputs[#inputs + 1] = text { name = "prompt", max_tokens = math.max(8, 16) }
reads[#reads + 1] = "prompt"

local sizes = {}
for key, value in pairs({ tokens = 48, name = "obs" }) do sizes[key] = value end

return pipeline {
  name = "shared", schema = 1,
  model = { arch = "any" },
  frame = { period_ms = 100 },
  inputs = inputs,
  resources = { kv.frame(sizes), buffer { name = "chunk", shape = { 8, 4 } } },
  nodes = {
    prefill { name = "see", reads = reads, writes = "obs" },
    action { name = "act", kv = prev "obs", out = "chunk", deadline = hard { ms = 100 } },
  },
}
