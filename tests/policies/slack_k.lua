-- slack_k: the largest k that fits the slack, less after a frame that was late because of the plan.
local function fresh(params)
  return tectum.test { pipeline = "pi05_aloha.lua", policy = "slack_k", params = params }
end

local t = fresh()
t:frame { nreq = 3, slack_us = 22000, cost = { decode = 4000 } }
t:expect { decode = { 5, 5, 5 }, snapped = 0, notes = { k = 5 } }   -- 22000 * 0.95 / 4000 = 5.2
t:frame { nreq = 3, slack_us = 1000 }
t:expect { paused = { 1, 2, 3 }, notes = { k = 0 } }

-- What is not captured snaps down; below the smallest captured k requests wait.
t:frame { nreq = 2, slack_us = 30000 }
t:expect { decode = { 5, 5 }, snapped = 2, notes = { k = 7 } }
t:frame { nreq = 2, slack_us = 15000 }
t:expect { paused = { 1, 2 }, snapped = 2, notes = { k = 3 } }

-- The cost is that of all requests together, at p99.
t:frame { nreq = 5, slack_us = 30000, cost = { decode = { p50 = 1, p99 = { [1] = 4000, [8] = 6000 } } } }
t:expect { notes = { k = 4 } }

-- No request, no decision.
t:frame { nreq = 0, slack_us = 30000 }
t:expect { decode = {}, notes = {} }

-- k_max is a limit, also when it is changed while frames run.
t = fresh { k_max = 5 }
t:frame { nreq = 1, slack_us = 1e6, cost = { decode = 1000 } }
t:expect { notes = { k = 5 } }
t:frame { params = { k_max = 4 } }
t:expect { decode = { 4 }, notes = { k = 4 } }

-- A miss that the plan caused halves the cap; one that the device caused does not.
t = fresh()
t:frame { nreq = 1, slack_us = 1e6, cost = { decode = 1000 } }
t:expect { notes = { k = 8 } }
t:observe { missed = true, cause = "gpu" }
t:frame { }
t:expect { notes = { k = 8 } }
t:observe { missed = true, cause = "plan" }
t:frame { }
t:expect { notes = { k = 4 } }
t:observe { missed = true, cause = "plan" }
t:frame { }
t:expect { notes = { k = 2 } }

-- It comes back by a tenth a frame.
for _ = 1, 10 do t:observe { } end
t:frame { }
t:expect { notes = { k = 3 } }

-- Never below one step.
for _ = 1, 20 do t:observe { missed = true } end
t:frame { }
t:expect { notes = { k = 1 } }

-- A cost of zero is no error.
t = fresh()
t:frame { nreq = 1, slack_us = 0, cost = { decode = 0 } }
t:expect { snapped = 0 }
