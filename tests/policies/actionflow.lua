-- actionflow: the depth that is asked for; with depth = 0 the shallowest ring whose frame fits.
local function ring(params)
  return tectum.test { pipeline = "../pipelines/ring.lua", policy = "actionflow", params = params }
end

ring { depth = 7 }:frame {}:expect { depth = 7, snapped = 0 }
ring { depth = 1 }:frame {}:expect { depth = 1, snapped = 0 }
ring { depth = 6 }:frame {}:expect { depth = 4, snapped = 1 }

-- 1, 4, 7 in flight: fewer make a frame longer. The budget is the deadline of 50 ms.
local t = ring { depth = 0 }
t:frame { cost = { packed = { [1] = 60000, [4] = 45000, [7] = 30000 } } }:expect { depth = 4 }
t:frame { budget_us = 70000 }:expect { depth = 1 }
t:frame { budget_us = 40000 }:expect { depth = 7 }
t:frame { budget_us = 1000 }:expect { depth = 7 } -- none fits: the shortest frame
t:frame { budget_us = 50000, cost = { packed = { p50 = 20000, p99 = 51000 } } }:expect { depth = 7 }
