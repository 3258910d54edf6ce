-- fill: what is soft in the time that is left, the most urgent first; slices of a prefill, then steps.
local function fresh(params)
  return tectum.test { pipeline = "planner_and_arm.lua", policy = "fill", params = params }
end

-- 20000 * 0.95 / 3000 = 6.3: six slices of 24; nothing decodes before the last.
local t = fresh { k = 2 }
t:frame { requests = { { node = "plan", slices = 24 } }, slack_us = 20000, cost = { think = 3000, plan = 1000 } }
t:expect { slices = { think = 6 }, paused = { 1 }, notes = { room_us = 1000 } }
t:frame { requests = { { node = "plan", slices = 18 } }, slack_us = 2000 }
t:expect { slices = { think = 0 }, paused = { 1 } }

-- The last slices, and in the same frame what still fits: 19000 - 2 * 3000 holds 2 steps.
t:frame { requests = { { node = "plan", slices = 2 } }, slack_us = 20000 }
t:expect { slices = { think = 2 }, decode = { 2 }, notes = { room_us = 11000 } }
t:frame { requests = { { node = "plan", slices = 6 } }, slack_us = 20000 }
t:expect { slices = { think = 6 }, paused = { 1 } }

-- One that has its prefix decodes; the more urgent one goes first whatever it needs.
t:frame { requests = { { node = "plan", deadline_us = 900000, slices = 24 }, { node = "plan", deadline_us = 500000 } },
          slack_us = 20000 }
t:expect { slices = { think = 5 }, decode = { 0, 2 }, paused = { 1 }, priority = { 1, 0 } }
t:frame { requests = { { node = "plan", deadline_us = 500000, slices = 24 }, { node = "plan", deadline_us = 900000 } },
          slack_us = 20000 }
t:expect { slices = { think = 6 }, paused = { 1, 2 } }

-- Two that decode share a launch: the second pays what the larger batch takes more.
t:frame { nreq = 2, slack_us = 4000, cost = { plan = { [1] = 1000, [2] = 1500 } } }
t:expect { decode = { 2, 2 }, notes = { room_us = 800 } }
t:frame { slack_us = 2500 }
t:expect { decode = { 2, 0 }, paused = { 2 } }

-- A cost of zero is no error; nothing to do, nothing decided.
t:frame { requests = { { node = "plan", slices = 24 } }, slack_us = 0, cost = { think = 0, plan = 0 } }
t:expect { slices = { think = 24 }, decode = { 2 } }
t:frame { nreq = 0, slack_us = 20000 }
t:expect { decode = {}, slices = { think = 0 } }
