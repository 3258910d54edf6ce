-- Up to 8 first actions may be given: those that the robot has begun while the frame was under way.
return extend("prefix_none.lua", {
  inputs = { tensor { name = "prev_actions", shape = { 8, 4 } } },
  nodes  = { action { name = "act", prefix = "prev_actions" } },
})
