-- two_models.lua, where the planner's newest finished sentence is the arm's prompt.
return extend("two_models.lua", { name = "text_edges",
  nodes = { decode { name = "plan", out = stream { name = "plan", default = "stay" } },
            prefill { name = "see", reads = { "cam", "state", "plan" } } } })
