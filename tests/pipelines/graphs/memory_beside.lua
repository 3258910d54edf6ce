-- The second model's prompts have segments of a memory in front of two pictures and a question.
return extend("chains_two_models.lua", {
  name   = "memory_beside",
  inputs = { segments { name = "past", max_segments = 4, tokens_each = 8 } },
  resources = {
    kv.segments { name = "mem", tokens = 32, store = "unused" },
    kv.frame    { name = "asked", tokens = 32 + 9 + 32 },
    kv.requests { name = "answers", tokens = 32 + 9 + 32 + 6 },
  },
  nodes = {
    memory_load { name = "recall", model = "planner", reads = { "past" }, from = "mem", into = "asked" },
    prefill { name = "look", after = "recall" },
  },
  capture = capture { ratio = { 0.25, 1.0 } },
})
