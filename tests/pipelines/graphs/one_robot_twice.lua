-- One robot, two models that act on it: a chunk of six with the earlier deadline beside one of ten.
local function arm(name, arch, ms, rows)
  return prefill { name = "see_" .. name, model = name, writes = "obs_" .. name,
                   reads = { "observation/image", "observation/wrist_image", "observation/state", "prompt" } },
         action { name = "act_" .. name, model = name, kv = "obs_" .. name, out = "chunk_" .. name,
                  deadline = hard { ms = ms, on_miss = "zeros" } },
         kv.frame { name = "obs_" .. name, tokens = 2 * 256 + 200 },
         buffer { name = "chunk_" .. name, shape = { rows, 32 } }
end
local see1, act1, keys1, chunk1 = arm("slow", "pi05", 80, 10)
local see2, act2, keys2, chunk2 = arm("fast", "pi0", 40, 6)
return pipeline { name = "one_robot_twice", schema = 1,
  models = { slow = model { arch = "pi05" }, fast = model { arch = "pi0" } },
  robot = "robots/libero.lua", frame = frame { period_ms = 100 },
  inputs = { image { name = "observation/image", h = 224, w = 224 }, image { name = "observation/wrist_image", h = 224, w = 224 },
             tensor { name = "observation/state", shape = { 8 } }, text { name = "prompt", max_tokens = 200 } },
  resources = { keys1, keys2, chunk1, chunk2 }, nodes = { see1, act1, see2, act2 } }
