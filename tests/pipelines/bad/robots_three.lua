-- A question on what two of three robots see, whose words would come with the third.
local eye <const> = function(name)
  return image { name = name .. "/base", h = 8, w = 8 }
end
local see <const> = function(name)
  return prefill { name = "see_" .. name, model = "arm", reads = { name .. "/base", "goal" }, writes = name }
end
local act <const> = function(name)
  return action { name = "act_" .. name, model = "arm", kv = name, out = "of_" .. name, deadline = hard { ms = 50 } }
end
return pipeline {
  name = "robots_three", schema = 1, frame = frame { period_ms = 100 }, models = { arm = model { arch = "any" } },
  robots = { a = "robots/aloha.lua", b = "robots/aloha.lua", c = "robots/aloha.lua" },
  inputs = { eye("a"), eye("b"), eye("c"), text { name = "goal", max_tokens = 8 }, text { name = "c/ask", max_tokens = 8 } },
  resources = {
    kv.frame { name = "a", tokens = 64 }, kv.frame { name = "b", tokens = 64 }, kv.frame { name = "c", tokens = 64 },
    kv.frame { name = "both", tokens = 64 }, kv.requests { name = "said", tokens = 128, slots = 2, share_prefix = "both" },
    buffer { name = "of_a", shape = { 4, 7 } }, buffer { name = "of_b", shape = { 4, 7 } }, buffer { name = "of_c", shape = { 4, 7 } },
  },
  nodes = {
    see("a"), act("a"), see("b"), act("b"), see("c"), act("c"),
    prefill { name = "look", model = "arm", reads = { "a/base", "b/base", "goal" }, writes = "both" },
    decode { name = "says", model = "arm", kv = "said", prompt = "c/ask", spawn = on_change(), max_tokens = 4, out = stream "said" },
  },
  capture = capture { batch = { 1, 2 }, k = { 4 } },
}
