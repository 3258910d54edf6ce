-- The depth of all rings by the age of what the robot acts on. More in flight makes frames shorter and
-- actions older: a sequence of K tokens lives ceil(K / forwards) frames. This takes the depth whose
-- actions are youngest among those that keep up `min_hz` (0: one action a period of the pipeline);
-- when none does, the one with the highest rate. A depth that is not the last frame's must win by
-- `margin`: every change costs frames without an action, or two at once.
local depths, rings, stages
return policy {
  name = "actionflow_fresh", api = 1, version = 1,
  needs = { "depth" },
  params = { min_hz = num { default = 0, min = 0, max = 1e4 },
             margin = num { default = 0.05, min = 0, max = 1 } },
  state = { depth = 0 },
  setup = function(S, T)
    depths, rings, stages = T.axis("depth"), T.rings, T.stages
  end,
  plan = function(S, F, D)
    local least = F.params.min_hz > 0 and 1e6 / F.params.min_hz or F.period_us
    local best, best_age, weighted, fastest, fastest_us
    for i = 1, #depths do
      local d = depths[i]
      local us = F.cost("packed", d, 0.99)
      local forwards = (stages + d - 1) // d
      local lives = (stages + forwards - 1) // forwards
      local age = (lives - 1) * math.max(us, F.period_us) + us
      local weight = d ~= S.depth and age * (1 + F.params.margin) or age
      if us <= least and us <= F.budget_us and (not best or weight < weighted) then
        best, best_age, weighted = d, age, weight
      end
      if not fastest or us < fastest_us then fastest, fastest_us = d, us end
    end
    S.depth = best or fastest
    for r = 1, #rings do D:depth(rings[r], S.depth) end
    if best then D:note("age_ms", math.floor(best_age / 1000)) end
  end,
}
