-- keep: the share of segments that is computed anew, by ratio or by the time to the first token.
-- keep_fidelity: the least share whose audits agree.
local function keep(params)
  return tectum.test { pipeline = "qwen_planner.lua", policy = "keep", params = params, layers = 8 }
end
local function fidelity(params)
  return tectum.test { pipeline = "qwen_planner.lua", policy = "keep_fidelity", params = params, layers = 8 }
end

-- Without segments nothing is decided; with them a curve that falls to a floor.
local t = keep { ratio = 1, target_ms = 0 }
t:frame {}:expect { recompute = { -1 }, notes = {} }
t:frame { segments = 3 }:expect { recompute = { 1, 1, 1 }, notes = { share = 1 } }
t = keep { ratio = 0, target_ms = 0 }
t:frame { segments = 3 }:expect { recompute = { 1, 0.8, 0.64 }, audit = false }

-- A target: late frames take share away, frames with room give it back.
t = keep { target_ms = 100 }
t:frame { segments = 3 }
t:expect { recompute = { 1 } }
for _ = 1, 8 do
  t:observe { node_us = { ask = 400000 } }
  t:frame {}
end
t:expect { recompute = { 1, 0.8, 0.64 } }
for _ = 1, 40 do
  t:observe { node_us = { ask = 20000 } }
  t:frame {}
end
t:expect { recompute = { 1, 1, 1 }, notes = { share = 1 } }

-- The first prompt is audited, then one in `every`.
t = fidelity { every = 3, agree = 0.9 }
t:frame { segments = 2 }:expect { audit = true, notes = { share = 0.5 } }
t:frame { audits = 1, agreed = 0 }:expect { audit = false, notes = { share = 0.625 } }
t:frame {}:expect { audit = false, notes = { share = 0.625 } }
t:frame {}:expect { audit = true }
t:frame { audits = 2, agreed = 1 }:expect { notes = { share = 0.625 * (1 - 0.25 / 9) } }
