-- A ring whose robot says something about every picture, by a deadline.
return extend("ring.lua", {
  name = "ring_hard",
  resources = { kv.requests { name = "say", tokens = 60, slots = 4, share_prefix = "ring" } },
  nodes = { decode { name = "talk", kv = "say", spawn = every(1), max_tokens = 4, out = stream "talk", deadline = hard { ms = 48 } } },
  capture = { batch = { 1, 2 }, k = { 1, 4 } },
})
