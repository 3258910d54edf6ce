-- said_demo.lua, whose second prompt has segments of a memory before what it has said.
return extend("said_demo.lua", { name = "said_memory",
  inputs = { segments { name = "past", max_segments = 4, tokens_each = 16 } },
  resources = { kv.frame { name = "task", tokens = 128 }, kv.segments { name = "mem", tokens = 64, tiers = { host = "1MiB" } } },
  capture = capture { batch = { 1, 3, 5, 8 }, k = { 2, 3, 4, 6, 12 }, ratio = { 1.0 } },
  nodes = { memory_load { name = "recall", model = "main", reads = { "past" }, from = "mem", into = "task" } } })
