-- Actions at every second observation; the robot carries out half of a chunk at each.
return extend("pi05_libero.lua", { name = "action_rate", nodes = { action { name = "act", spawn = every(2) } } })
