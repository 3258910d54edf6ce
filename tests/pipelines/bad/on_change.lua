-- Prefills that run where a text is new: one reads pictures and the state besides, one reads no text.
return extend("good.lua", {
  resources = { kv.frame { name = "high", tokens = 300 }, kv.requests { name = "told", tokens = 340, slots = 8, share_prefix = "high" } },
  nodes = {
    prefill { name = "see", spawn = on_change("prompt") },
    prefill { name = "look", reads = { "cam_high" }, writes = "high", template = "caption", spawn = on_change() },
    decode { name = "say", kv = "told", spawn = every(1), max_tokens = 30, out = stream "caption" },
  },
})
