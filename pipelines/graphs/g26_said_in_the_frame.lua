-- The sub-task is said first, then it is the prompt of a second look, on which the arm acts: see, say,
-- look, act, all in one frame. `after` waits for the text; the two prompts share their pictures' rows.
return extend("pi05_libero.lua", { name = "g26_said_in_the_frame",
  frame = { period_ms = 500 },
  resources = { kv.frame { name = "task", tokens = 2 * 256 + 200 } },
  nodes = { decode { name = "talk", max_tokens = 8, supersede = true, deadline = without "deadline" },
            prefill { name = "look", writes = "task", after = "talk",
                      reads = { "observation/image", "observation/wrist_image", "observation/state", "narration" } },
            action { name = "act", kv = "task", deadline = hard { ms = 490, on_miss = "hold" } } } })
