-- Action nodes start on no request and no instruction, only with the prefix of their frame.
return extend("good.lua", { nodes = {
  action { name = "act", spawn = on_change() },
  action { name = "late", kv = prev "obs", spawn = on_change("obs") },
  action { name = "asked", kv = "obs", spawn = on_request() },
  action { name = "fresh", kv = "obs", spawn = on_change("obs") },
} })
