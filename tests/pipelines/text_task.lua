-- The bundled model, whose instruction is its task and its own newest narration. Beside it captions of
-- one picture, whose prompt is fixed words, and remarks on task and narration.
return extend("text_loop.lua", { name = "text_task",
  inputs = { text { name = "prompt", max_tokens = 16 } },
  resources = {
    kv.frame { name = "seen", tokens = 16 + 16 }, kv.frame { name = "heard", tokens = 60 },
    kv.requests { name = "captions", tokens = 16 + 16 + 4, slots = 1, share_prefix = "seen" },
    kv.requests { name = "remarks", tokens = 60 + 4, slots = 1, share_prefix = "heard" },
  },
  nodes = {
    decode  { name = "talk", out = stream { name = "narration", default = "" }, deadline = without "deadline" },
    prefill { name = "see", reads = { "observation/image", "observation/wrist_image",
                                     "observation/state", "prompt", prev "narration" } },
    prefill { name = "look", reads = { "observation/image" }, writes = "seen", template = "caption" },
    decode  { name = "caption", kv = "captions", spawn = every(4), max_tokens = 4, out = stream "caption" },
    prefill { name = "hear", reads = { "narration", "prompt" }, writes = "heard" },
    decode  { name = "remark", kv = "remarks", spawn = on_change("prompt"), max_tokens = 4,
              out = stream "remark" },
  } })
