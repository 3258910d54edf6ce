-- A ring that says something about every picture.
return extend("ring.lua", {
  name = "ring_says",
  resources = { kv.requests { name = "say", tokens = 60, slots = 2, share_prefix = "ring" } },
  nodes = { decode { name = "talk", kv = "say", spawn = every(1), max_tokens = 4, out = stream "talk" } },
  capture = { batch = { 1, 2 }, k = { 1, 4 } },
})
