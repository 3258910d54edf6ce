-- two_models.lua, where the planner ranks skills and the likeliest is the arm's prompt.
return extend("two_models.lua", { name = "text_ranks",
  nodes = { score { name = "rank", model = "planner", kv = "context", spawn = on_change(),
                    candidates = { " pick up the cup", " open the drawer", " stay" },
                    out = stream { name = "skill", default = " pick up the cup" } },
            prefill { name = "see", reads = { "cam", "state", "skill" } } } })
