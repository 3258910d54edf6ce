-- OpenVLA on LIBERO, a simulated Franka arm. The simulator waits for each action, so each observation
-- is one action's whole business: depth 1. With `--set policy.params.depth=7` the ring is full and
-- the simulator must go on while it fills.
return extend("openvla_ring.lua", {
  name   = "openvla_libero",
  model  = { weights = "openvla-7b-finetuned-libero-spatial" },
  robot  = "robots/openvla_libero.lua",
  frame  = { period_ms = 50, clock = "external" },
  nodes  = { decode { name = "advance", deadline = hard { ms = 50, on_miss = "hold", limit = 3 } } },
  policy = use { name = "actionflow", params = { depth = 1 } },
})
