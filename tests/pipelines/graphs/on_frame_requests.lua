-- on_frame.lua with the request slots, triggers and ends that it has without saying so.
local NEW <const> = 6
return extend("on_frame.lua", {
  name = "on_frame_requests",
  resources = {
    kv.requests { name = "notes", slots = 3 },
    kv.requests { name = "answers", tokens = 41 + NEW, slots = 1, share_prefix = "asked" },
  },
  nodes = {
    decode { name = "say", kv = "notes", spawn = on_change("obs"), supersede = true },
    decode { name = "answer", kv = "answers", spawn = on_change("asked"), supersede = true },
  },
})
