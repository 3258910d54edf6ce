-- Two language tasks on one observation: what is done, and an answer to a question of its own. The
-- demo's model under a causal mask, so that a question can be read behind the frame's prefix.
return extend("demo_metaworld.lua", {
  name   = "tasks",
  model  = { arch = "pi05_causal" },
  inputs = { text { name = "question", max_tokens = 8 },
             text { name = "other", max_tokens = 6, default = "turn it open" } },
  resources = { kv.requests { name = "lang", tokens = 100 } },
  nodes  = {
    decode { name = "answer", kv = "lang", prompt = "question", spawn = on_request(),
             max_tokens = 6, out = stream "answers" },
    decode { name = "remark", kv = "lang", prompt = "other", spawn = on_change(), max_tokens = 6,
             out = stream "remarks" },
  },
})
