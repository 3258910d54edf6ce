-- edf: the most urgent requests that fit the slack, k steps each.
local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "edf", params = { k = 4 } }
local step = { [1] = 1000, [3] = 1100, [5] = 1300, [8] = 1500 }

t:frame { nreq = 3, slack_us = 4400, cost = { decode = step } }
t:expect { decode = { 4, 4, 4 }, paused = {}, notes = { edf_batch = 3 }, snapped = 0 }

-- Less than one step of the smallest batch: everything waits.
t:frame { nreq = 3, slack_us = 3999 }
t:expect { paused = { 1, 2, 3 }, notes = { edf_batch = 0 } }

-- Room for one: the most urgent, not the first.
t:frame { slack_us = 4000, requests = {
  { id = 4, deadline_us = 900000 }, { id = 7, deadline_us = 300000 }, { id = 9 } } }
t:expect { decode = { 0, 4, 0 }, notes = { edf_batch = 1 } }

-- Room for all: one launch, most urgent first; of equal deadlines the older one.
t:frame { slack_us = 6000, requests = {
  { id = 4, deadline_us = 900000 }, { id = 7, deadline_us = 300000 },
  { id = 9, deadline_us = 300000 }, { id = 10, deadline_us = math.huge } } }
t:expect { launches = { { 2, 3, 1, 4 } }, priority = { 2, 0, 1, 3 } }

-- Fewer requests than in the frame before: nothing is left over.
t:frame { nreq = 1 }
t:expect { decode = { 4 }, launches = { { 1 } } }
t:frame { nreq = 0 }
t:expect { decode = {}, notes = { edf_batch = 0 } }

-- All request slots taken: refused.
t:frame { nreq = 8 }
t:admit {}
t:expect { refused = "no kv slot" }
t:frame { nreq = 7 }
t:admit {}
t:expect { admitted = true }

-- It asks for its own quantile.
t = tectum.test { pipeline = "pi05_aloha.lua", policy = "edf", params = { k = 4, q = 0.5 } }
t:frame { nreq = 1, slack_us = { p50 = 4000, p99 = 100 }, cost = { decode = { p50 = 1000, p99 = 2000 } } }
t:expect { decode = { 4 } }
t:frame { params = { q = 0.99 } }
t:expect { decode = { 0 } }

-- A request that waits for a prefill in slices: what fits of those comes first, 20000 / 3000 = 6.
t = tectum.test { pipeline = "planner_and_arm.lua", policy = "edf", params = { k = 4 } }
t:frame { requests = { { node = "plan", slices = 24 } }, slack_us = 20000, cost = { think = 3000, plan = 500 } }
t:expect { slices = { think = 6 }, paused = { 1 }, notes = { edf_batch = 0 } }

-- The last of them: it decodes in the same frame when its steps fit behind.
t:frame { requests = { { node = "plan", slices = 6 } }, slack_us = 20000 }
t:expect { slices = { think = 6 }, decode = { 4 }, notes = { edf_batch = 1 } }
t:frame { requests = { { node = "plan", slices = 6 } }, slack_us = 19000 }
t:expect { slices = { think = 6 }, paused = { 1 } }

-- One that can decode takes its steps of what is left, and no time is no slice.
t:frame { requests = { { node = "plan", deadline_us = 500000, slices = 24 }, { node = "plan", deadline_us = 900000 } },
          slack_us = 20000 }
t:expect { slices = { think = 6 }, decode = { 0, 4 }, paused = { 1 }, notes = { edf_batch = 1 } }
t:frame { requests = { { node = "plan", slices = 24 } }, slack_us = 0 }
t:expect { slices = { think = 0 }, paused = { 1 } }
