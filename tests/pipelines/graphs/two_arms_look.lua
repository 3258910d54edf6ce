-- Two arms of one model, and a question about what both see: its pictures are the right arm's, then the
-- left one's, its state is the left arm's, then the right one's.
local see <const> = function(side)
  return prefill { name = "see_" .. side, model = "arm", writes = "obs_" .. side,
                   reads = { side .. "/observation/image", side .. "/observation/wrist_image",
                             side .. "/observation/state", "goal" } }
end
local act <const> = function(side)
  return action { name = "act_" .. side, model = "arm", kv = "obs_" .. side, out = "chunk_" .. side, steps = 2,
                  deadline = hard { ms = 90, on_miss = "hold" } }
end
return pipeline { name = "two_arms_look", schema = 1,
  models = { arm = model { arch = "pi05", weights = "pipelines/checkpoints/metaworld" } },
  robots = { left = "robots/metaworld.lua", right = "robots/metaworld.lua" },
  frame  = frame { period_ms = 100, clock = "external" },
  inputs = {
    image { name = "left/observation/image", h = 64, w = 64 },  image { name = "left/observation/wrist_image", h = 64, w = 64 },
    image { name = "right/observation/image", h = 64, w = 64 }, image { name = "right/observation/wrist_image", h = 64, w = 64 },
    tensor { name = "left/observation/state", shape = { 4 } },  tensor { name = "right/observation/state", shape = { 4 } },
    text { name = "goal", max_tokens = 32 }, text { name = "right/question", max_tokens = 60 },
  },
  resources = {
    kv.frame { name = "obs_left", tokens = 64 }, kv.frame { name = "obs_right", tokens = 64 },
    kv.frame { name = "both", tokens = 3 * 16 + 60 }, kv.requests { name = "said", tokens = 3 * 16 + 72, slots = 2, share_prefix = "both" },
    buffer { name = "chunk_left", shape = { 16, 4 } }, buffer { name = "chunk_right", shape = { 16, 4 } },
  },
  nodes = {
    see("left"), act("left"), see("right"), act("right"),
    prefill { name = "look", model = "arm", writes = "both",
              reads = { "right/observation/wrist_image", "left/observation/state", "left/observation/image", "right/observation/image",
                        "right/observation/state", "right/question" } },
    decode { name = "says", model = "arm", kv = "said", spawn = on_change(), max_tokens = 12, temperature = 4, out = stream "says" },
  },
  capture = capture { batch = { 1, 2 }, k = { 1, 4, 12 } },
  policy  = use { name = "fill" },
}
