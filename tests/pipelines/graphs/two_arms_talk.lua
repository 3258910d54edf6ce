-- Two arms of different robots, each with language of its own and a deadline of its own: the right
-- one's is the earlier. A third prefill answers questions about what the left one sees.
local OBS <const> = 2 * 256 + 200
local function see(side)
  return prefill { name = "see_" .. side, model = side, writes = "obs_" .. side,
                   reads = { side .. "/observation/image", side .. "/observation/wrist_image",
                             side .. "/observation/state", side .. "/prompt" } }
end
local function act(side, ms)
  return action { name = "act_" .. side, model = side, kv = "obs_" .. side, out = "chunk_" .. side,
                  deadline = hard { ms = ms, on_miss = "zeros" } }
end
local function talk(side)
  return decode { name = "talk_" .. side, model = side, kv = "lang_" .. side, max_tokens = 12, out = stream("said_" .. side),
                  spawn = every(2) }
end
local function arm(side)
  return image { name = side .. "/observation/image", h = 224, w = 224 },
         image { name = side .. "/observation/wrist_image", h = 224, w = 224 },
         tensor { name = side .. "/observation/state", shape = { 8 } },
         text { name = side .. "/prompt", max_tokens = 200 }
end
local a, b, c, d = arm "left"
local e, f, g, h = arm "right"
return pipeline { name = "two_arms_talk", schema = 1,
  models = { left = model { arch = "pi05" }, right = model { arch = "pi05" } },
  robots = { left = "robots/libero.lua", right = "robots/libero.lua" },
  frame = frame { period_ms = 100 },
  inputs = { a, b, c, d, e, f, g, h, text { name = "question", max_tokens = 40, default = "what is it" } },
  resources = { kv.frame { name = "obs_left", tokens = OBS }, kv.frame { name = "obs_right", tokens = OBS },
                kv.requests { name = "lang_left", tokens = OBS + 12, slots = 3, share_prefix = "obs_left" },
                kv.requests { name = "lang_right", tokens = OBS + 12, slots = 3, share_prefix = "obs_right" },
                kv.frame { name = "asked", tokens = 256 + 40 },
                kv.requests { name = "answers", tokens = 256 + 40 + 8, slots = 2, share_prefix = "asked" },
                buffer { name = "chunk_left", shape = { 10, 32 } }, buffer { name = "chunk_right", shape = { 10, 32 } } },
  nodes = { see "left", act("left", 90), talk "left", see "right", act("right", 60), talk "right",
            prefill { name = "ask", model = "left", reads = { "left/observation/image", "question" }, writes = "asked" },
            decode { name = "answer", model = "left", kv = "answers", max_tokens = 8, spawn = every(5), out = stream "answer" } },
  capture = capture { batch = { 1, 2, 3 }, k = { 1, 2, 4 } } }
