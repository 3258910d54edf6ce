-- OpenVLA on a WidowX arm as in BridgeData V2, 5 Hz: the depth of the ring follows what the device can
-- do. Where an action can be said within a period each is of the newest observation.
return extend("openvla_ring.lua", {
  name   = "openvla_bridge",
  frame  = { period_ms = 200 },
  nodes  = { decode { name = "advance", deadline = hard { ms = 190, on_miss = "hold", limit = 3 } } },
  policy = use { name = "actionflow_fresh" },
})
