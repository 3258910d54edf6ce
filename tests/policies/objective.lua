-- objective: Eq. 5-6 over the requests in flight. tests/objective.c tries all golden cases.
local K <const> = "capture.k=[1,2,3,5,6,10,15,30]"
local B <const> = "capture.batch=[1,2,3,4,5,6,7,8]"
local function fresh(params)
  return tectum.test { pipeline = "pi05_aloha.lua", policy = "objective", horizon = 10,
                       params = params, set = { K, B } }
end
local cost = { see = 57000, act = 21000, decode = {} }
for b = 1, 8 do cost.decode[b] = 12600 + 50 * b end

-- 8 request slots: k = 1, 2 and 3 would need more of them; of the rest 5 makes most tokens a second.
local t = fresh { f_min = 70 }
t:frame { nreq = 6, cost = cost }
t:expect { decode = { 5, 5, 5, 5, 5, 5 }, notes = { k = 5, rows = false } }

-- More in flight than that k carries at 70 Hz: (rows, k) with most tokens a second instead.
t:frame { nreq = 8 }
t:expect { notes = { k = 5, rows = 7 }, decode = { 5, 5, 5, 5, 5, 5, 5, 0 } }

-- The most urgent rows first where not all fit.
t = fresh { f_min = 109 }
t:frame { cost = cost, requests = {
  { id = 1, deadline_us = 900 }, { id = 2, deadline_us = 300 }, { id = 3, deadline_us = 600 } } }
t:expect { notes = { k = 1, rows = 3 }, launches = { { 2, 3, 1 } } }
t:frame { params = { f_min = 110.3 }, requests = {
  { id = 1, deadline_us = 900 }, { id = 2, deadline_us = 300 }, { id = 3, deadline_us = 600 } } }
t:expect { decode = { 0, 1, 0 }, notes = { k = 1, rows = 1 } }

-- Too little for a step: no language. Slower than asked even without: the same, actions still run.
t = fresh { f_min = 120 }
t:frame { nreq = 2, cost = cost }
t:expect { paused = { 1, 2 }, notes = { k = 0, rows = 0 } }
t:frame { nreq = 2, params = { f_min = 140 } }
t:expect { paused = { 1, 2 }, notes = { k = 0, rows = 0 } }

-- With a fixed period all feasible k make as many tokens: the largest is taken.
t = fresh { f_min = 60, period_us = 200000 }
t:frame { nreq = 1, cost = cost }
t:expect { decode = { 6 } }

-- A request every fourth frame: one frame's work may wait for three short ones.
t = fresh { f_min = 60, every = 4 }
t:frame { nreq = 1, cost = cost }
t:expect { decode = { 1 } }

t:frame { nreq = 0 }
t:expect { decode = {}, notes = {} }

-- A node whose cost is not known is told, not guessed.
t = fresh()
t:frame { nreq = 1, cost = { decode = 1000 } }
t:expect { error = "no cost is known for 'prefill'" }

-- Slices of a prefill come first, as many as f_min allows: 100000 us a frame less hard work of 78000 hold
-- seven of 3000; a request behind its last one decodes.
t = tectum.test { pipeline = "planner_and_arm.lua", policy = "objective", horizon = 10, params = { f_min = 100 } }
t:frame { requests = { { node = "plan", slices = 24 } },
          cost = { see = 57000, act = 21000, think = 3000, plan = 1000 } }
t:expect { slices = { think = 7 }, paused = { 1 } }
t:frame { requests = { { node = "plan", slices = 2 } } }
t:expect { slices = { think = 2 }, decode = { 4 }, notes = { rows = 1 } }
