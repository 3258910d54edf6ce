-- The same prompt once for each goal, and every four frames: two prefills, as what begins them differs.
return extend("held.lua", {
  name = "held_twice",
  resources = { kv.frame { name = "again", tokens = 80 }, kv.requests { name = "more", tokens = 120, slots = 1, share_prefix = "again" } },
  nodes = { prefill { name = "muse", model = "planner", reads = { "goal" }, writes = "again", spawn = every(4) },
            decode { name = "mull", model = "planner", kv = "more", spawn = on_change("again"), max_tokens = 2, out = stream "mulled" } },
})
