-- two_models.lua, where the planner says what to do next at an eighth of the frames' rate, the arm is
-- told in every frame, and remarks on each new plan.
return extend("text_edges.lua", { name = "text_levels",
  nodes = { prefill { name = "think", spawn = every(8) },
            decode  { name = "plan", spawn = on_change("context") },
            decode  { name = "remark", spawn = on_change("context") },
            decode  { name = "talk", spawn = on_change("plan") } } })
