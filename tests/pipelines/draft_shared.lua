-- A soft text and a hard one whose tokens one small model proposes: their prefills of it are one.
return extend("draft_first.lua", { name = "draft_shared",
  nodes = { decode { name = "say", spawn = on_request(), deadline = soft { ms = 60000 } },
            action { name = "act", kv = "obs", after = without "after" },
            decode { name = "tell", spawn = on_request() } } })
