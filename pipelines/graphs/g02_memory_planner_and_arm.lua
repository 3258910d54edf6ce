-- OxyGen and KEEP together: a text planner with a memory beside the controller. Recall, selective
-- recomputation and loading are work items of soft work; hard actions never wait for them.
return extend("planner_and_arm.lua", { name = "g02_memory_planner_and_arm",
  capture   = { ratio = { 0.25, 1.0 } },
  inputs    = { segments { name = "memory", max_segments = 20, tokens_each = 64 } },
  resources = { kv.segments { name = "mem", tokens = 512, tiers = { host = "64MiB" } },
                kv.frame { name = "context", tokens = 1024 + 512 + 128 }, -- goal, memory, the template's own
                kv.requests { name = "plans", tokens = 1024 + 512 + 128 + 48 } },
  nodes     = {
    memory_load { name = "recall", model = "planner", reads = { "memory" }, from = "mem", into = "context",
                  recompute = { first = 1.0, decay = 0.93, floor = 0.15 } },
    prefill     { name = "think", model = "planner", reads = { "goal" }, writes = "context",
                  after = "recall", template = "planner_memory" },
  },
})
