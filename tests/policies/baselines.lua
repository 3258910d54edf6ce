-- default, isolated, shared_kv, batch_only, parallel: what each leaves out of oxygen.
local function of(policy, set)
  return tectum.test { pipeline = "pi05_aloha.lua", policy = policy, set = set }
end
local three = { nreq = 3 }

of "default":frame(three):expect {
  paused = { 1, 2, 3 }, unshared = {}, snapped = 0, notes = {} }

of "isolated":frame(three):expect {
  decode = { 30, 30, 30 }, unshared = { 1, 2, 3 }, launches = { { 1 }, { 2 }, { 3 } }, snapped = 0 }

-- Requests that wait for a prefill in slices have all of theirs in the frame, and decode in it.
for _, policy in ipairs { "isolated", "shared_kv", "batch_only" } do
  local planner = tectum.test { pipeline = "planner_and_arm.lua", policy = policy }
  planner:frame { requests = { { node = "plan", slices = 24 }, { node = "plan", slices = 20 } } }
  planner:expect { slices = { think = 44 },
                   launches = policy == "batch_only" and { { 1, 2 } } or { { 1 }, { 2 } } }
  planner:frame { requests = { { node = "plan" } } }
  planner:expect { slices = { think = 0 } }
end

of "shared_kv":frame(three):expect {
  decode = { 30, 30, 30 }, unshared = {}, launches = { { 1 }, { 2 }, { 3 } } }

of "batch_only":frame(three):expect {
  decode = { 5, 5, 5 }, unshared = { 1, 2, 3 }, launches = { { 1, 2, 3 } } }

of "parallel":frame(three):expect {
  decode = { 30, 30, 30 }, unshared = { 1, 2, 3 }, launches = { { 1 }, { 2 }, { 3 } },
  partition = { talk = "bg", act = false } }

-- The partition is the one where no hard node is, whatever its name.
of("parallel", { "nodes.act.partition=bg" }):frame(three):expect { partition = { talk = "rt" } }

-- Without a captured k that reaches the end, the largest.
of("isolated", { "capture.k=[4,8]" }):frame(three):expect { decode = { 8, 8, 8 }, snapped = 3 }
