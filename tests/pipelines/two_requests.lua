-- two_models.lua with a second kv.requests behind each prefix: plans have a slot that no remark takes, and what is
-- said has three that no answer takes. One question is asked of both models, each time of its own prefix.
return extend("two_models.lua", { name = "two_requests",
  inputs = { text { name = "question", max_tokens = 4 } },
  models = { arm = model { arch = "pi05_causal" } },
  resources = {
    kv.requests { name = "plans", slots = 1 },
    kv.requests { name = "remarks", tokens = 160 + 5, slots = 2, share_prefix = "context" },
    kv.requests { name = "asides", tokens = 160 + 4 + 4, slots = 1, share_prefix = "context" },
    kv.requests { name = "asked", tokens = 60 + 4 + 5, slots = 1, share_prefix = "obs" },
  },
  nodes = {
    decode { name = "remark", kv = "remarks", spawn = every(1) },
    decode { name = "answer", model = "arm", kv = "asked", prompt = "question", spawn = every(1), max_tokens = 5,
             out = stream "answer" },
    decode { name = "aside", model = "planner", kv = "asides", prompt = "question", spawn = every(5), max_tokens = 4,
             out = stream "aside" },
    decode { name = "bare", model = "arm", kv = "obs", spawn = every(3), max_tokens = 3, out = stream "bare" },
    score  { name = "rank", model = "planner", kv = "remarks", spawn = every(4), candidates = { " yes", " no", " later" },
             out = stream "rank" },
  } })
