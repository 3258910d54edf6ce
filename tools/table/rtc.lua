-- The table's pipeline with real-time chunking: each chunk is pulled to what the robot executes until it comes.
return extend("table.lua", { name = "table_rtc",
  inputs = { tensor { name = "left", shape = { 16, 4 } }, tensor { name = "delay", shape = { 1 } } },
  nodes = { action { name = "act", guide = { previous = "left", delay_input = "delay", schedule = "exp",
                                             execution_horizon = 16, max_guidance_weight = 10 } } } })
