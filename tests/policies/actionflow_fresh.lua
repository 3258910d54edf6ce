-- actionflow_fresh: the depth whose actions are youngest among those that keep up the rate.
local function ring(params)
  return tectum.test { pipeline = "../pipelines/ring.lua", policy = "actionflow_fresh", params = params }
end

-- A frame at depth 1 has the action of its own observation: 45 ms old when it leaves.
local t = ring {}
t:frame { cost = { packed = { [1] = 45000, [4] = 25000, [7] = 20000 } } }
t:expect { depth = 1, notes = { age_ms = 45 } }
t:frame {}:expect { depth = 1, notes = { age_ms = 45 } }

-- Too long for a period: next is depth 4 of 7 stages, two forwards, four frames of life.
t:frame { cost = { packed = { [1] = 60000, [4] = 25000, [7] = 20000 } } }
t:expect { depth = 4, notes = { age_ms = 175 } }
t:frame {}:expect { depth = 4, notes = { age_ms = 175 } }

-- A higher rate than the period's, then none that keeps it: the fastest.
ring { min_hz = 45 }:frame { cost = { packed = { [1] = 45000, [4] = 25000, [7] = 20000 } } }:expect { depth = 7 }
ring { min_hz = 100 }:frame { cost = { packed = { [1] = 45000, [4] = 25000, [7] = 20000 } } }
  :expect { depth = 7, notes = {} }

-- One that is younger by less than the margin stays away; without a margin it is taken.
local close = { packed = { [1] = 46000, [4] = 25000, [7] = 20000 } }
t = ring { margin = 1 }
t:frame { cost = { packed = { [1] = 70000, [4] = 25000, [7] = 20000 } } }:expect { depth = 4 }
t:frame { cost = { packed = { [1] = 49000, [4] = 5000, [7] = 4000 } }, budget_us = 49500 }
  :expect { depth = 1 } -- 98 ms against 155
t:frame { cost = close }:expect { depth = 1 }
