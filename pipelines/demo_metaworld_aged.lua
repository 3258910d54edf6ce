-- The bundled demo where observations are old: a policy that is told the actions which the robot
-- executes while the answer is on its way, and continues them (trained real-time chunking).
return extend("demo_metaworld.lua", {
  name   = "demo_metaworld_aged",
  model  = { weights = "pipelines/checkpoints/metaworld_aged" },
  inputs = { tensor { name = "prev_actions", shape = { 8, 4 } } },
  nodes  = { action { name = "act", prefix = "prev_actions" } },
})
