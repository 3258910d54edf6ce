-- A planner that sees the camera beside the controller: the second model has pictures of its own. The
-- planner's tokens are those of the planner alone on the same picture and goal; the actions are those
-- of the controller alone.
return extend("planner_and_arm.lua", { name = "g01_planner_sees",
  models    = { planner = model { arch = "pi05_causal", weights = "paligemma_planner" } },
  resources = { kv.frame { name = "context", tokens = 256 + 256 }, kv.requests { name = "plans", tokens = 256 + 256 + 48 } },
  inputs    = { text { name = "goal", max_tokens = 256 } },
  nodes     = { prefill { name = "think", model = "planner", reads = { "observation/image", "goal" },
                          writes = "context", template = "plain" } },
})
