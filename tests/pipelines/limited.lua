-- The bundled robot with a limit that some chunks of its model are beyond: it stops.
local robot = include "robots/metaworld.lua"
robot.actions.limits = { max = { false, 0.25, false, false }, on = "stop" }
return extend("demo_metaworld.lua", { robot = robot })
