-- two_models.lua, where prompts are made of several texts: the arm's of its task and the planner's
-- newest sentence, the planner's of the goal, what it said last and the arm's newest remark.
return extend("two_models.lua", { name = "several_texts",
  resources = { kv.frame { name = "context", tokens = 60 }, kv.requests { name = "plans", tokens = 80 } },
  inputs = { text { name = "goal", max_tokens = 20 }, text { name = "prompt", max_tokens = 6 } },
  nodes = { prefill { name = "think", reads = { "goal", prev "plan", "talk" } },
            decode  { name = "plan", out = stream { name = "plan", default = "stay" } },
            decode  { name = "remark", spawn = on_change("goal") },
            decode  { name = "talk", out = stream { name = "talk", default = "" } },
            prefill { name = "see", reads = { "cam", "state", "prompt", "plan" } } } })
