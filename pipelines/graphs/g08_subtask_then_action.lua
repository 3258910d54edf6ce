-- pi0.5's own scheme: the sub-task is said first, and the actions are denoised on the keys that
-- language has extended. `after` waits for the text within the frame.
return extend("pi05_libero.lua", { name = "g08_subtask_then_action",
  frame = { period_ms = 250 },
  nodes = { decode { name = "talk", max_tokens = 8, supersede = true, deadline = without "deadline" },
            action { name = "act", kv = "lang", after = "talk", deadline = hard { ms = 240, on_miss = "hold" } } } })
