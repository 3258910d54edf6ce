-- The same with a memory each, which are given the same.
return extend("two_load.lua", {
  name = "two_load_apart",
  resources = { kv.segments { name = "mem2", tokens = 32 } },
  nodes = { memory_load { name = "recall2", from = "mem2" }, remember { name = "keep2", reads = { "plan" }, into = "mem2" } },
})
