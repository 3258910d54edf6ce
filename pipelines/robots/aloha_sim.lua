-- ALOHA in simulation (gym-aloha): one camera, absolute joint actions.
local robot = include "aloha.lua"
robot.variant = "pi0_aloha_sim"
return robot
