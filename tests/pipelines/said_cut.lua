-- The arm of said_beside.lua with a memory in its second prompt, whose frame has room for fewer ids
-- than its texts may have together.
return extend("said_beside.lua", { name = "said_cut",
  inputs = { segments { name = "past", max_segments = 2, tokens_each = 4 } },
  resources = { kv.frame { name = "task", tokens = 30 }, kv.segments { name = "mem", tokens = 8, tiers = { host = "1MiB" } } },
  capture = capture { ratio = { 1.0 } },
  nodes = { prefill { name = "look", template = "facts" },
            memory_load { name = "recall", model = "main", reads = { "past" }, from = "mem", into = "task" } } })
