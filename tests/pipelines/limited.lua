-- The bundled robot with limits that every chunk of its model is beyond: it stops.
local robot = include "robots/metaworld.lua"
robot.actions.limits = { max = 0.25, on = "stop" }
return extend("demo_metaworld.lua", { robot = robot })
