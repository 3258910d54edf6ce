-- Arms of one kind that remember: what each was told is in its own prompts, all of it computed anew.
return extend("demo_metaworld.lua", { name = "memory_many",
  frame     = { sessions = 3, gather_ms = 5 },
  capture   = { ratio = { 1.0 } },
  inputs    = { segments { name = "memory", max_segments = 4, tokens_each = 16 } },
  resources = { kv.segments { name = "mem", tokens = 64, tiers = { host = "6MiB" } },
                kv.frame { name = "obs", tokens = 2 * 16 + 32 + 64 }, kv.requests { name = "lang", tokens = 2 * 16 + 32 + 64 + 12 } },
  nodes     = { memory_load { name = "recall", reads = { "memory" }, from = "mem", into = "obs",
                              recompute = { first = 1.0, decay = 1.0, floor = 1.0 } },
                prefill { name = "see", after = "recall" } } })
