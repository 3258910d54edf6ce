-- The test tool itself: what a frame holds when nothing is said, what stays, every kind of expectation.
local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "tool_policy.lua" }

-- Defaults: from the pipeline file.
t:frame { nreq = 2 }
t:expect { notes = { index = 0, now = 0, left = 30, deadline = 1500000, horizon = 50, slots = 8, fresh = 1,
                     budget = 45000 } }

-- The clock goes on by one period; what is not given stays, and gets older.
t:frame { }
t:expect { notes = { index = 1, now = 50000, left = 30, deadline = 1500000, fresh = 0 } }

-- What is given is what the policy sees.
t:frame { index = 9, now_us = 7, slots = 3, horizon = 10, budget_us = 100,
          requests = { { id = 5, max = 20, done = 8, deadline_us = 99, age_frames = 2 } } }
t:expect { notes = { index = 9, now = 7, left = 12, deadline = 99, horizon = 10, slots = 3, fresh = 0,
                     budget = 100 } }

-- Modes of the policy beside: every decision can be judged.
t = tectum.test { pipeline = "pi05_aloha.lua", policy = "tool_policy.lua", params = { mode = 1 } }
t:frame { nreq = 4, cost = { decode = { [2] = 10, [4] = 20 }, talk = 7 }, slack_us = { p50 = 9, max = 3 },
          late = { state = 5 }, kv = { lang = { used = 11 } }, last = { tokens = 6, node_us = { act = 8 } } }
t:expect {
  decode = { 8, 0, 0, 8 }, paused = { 2 }, shed = { 3 }, reasons = { [3] = "old" }, unshared = { 1 },
  group = { 0, 0, 0, 1 }, priority = { 4, 0, 0, 2 }, launches = { { 4 }, { 1 } }, snapped = 1,
  partition = { talk = "rt", see = false }, depth = 0, skipped = {},
  notes = { two = 10, three = 20, six = 30, talk = 7, p50 = 9, p99 = 3, late = 5, used = 8611,
            word = false } }

-- admit, observe, evict.
t:admit { max = 31 }
t:expect { admitted = false, refused = "long" }
t:admit { }
t:expect { admitted = true }
t:evict(2)
t:expect { victim = 2 }
t:evict(3)
t:expect { victim = false }
t:observe { missed = true, overrun_us = 12 }
t:frame { params = { mode = 0 } }
t:expect { notes = { cause = "plan", overrun = 12 } }

-- Errors of the policy can be expected; a test goes on after them.
t:frame { params = { mode = 2 } }
t:expect { error = "no field 'reqs' in frame view", paused = { 1, 2, 3, 4 } }
t:observe { cause = "gpu" }
t:expect { error = "did not expect gpu" }
