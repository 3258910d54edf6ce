-- LIBERO, a simulated Franka arm, driven by OpenVLA-OFT: two cameras and the arm's state, chunks of 8
-- Cartesian actions.
--
-- State: position of the hand 3, axis-angle 3, gripper 2. Actions and pictures as for OpenVLA
-- (openvla_libero.lua), but values instead of tokens; widths of the statistics are 1e-8 wider.
local robot = include "openvla_libero.lua"

robot.name    = "openvla_oft_libero"
robot.cameras = { { slot = "full_image", input = "observation/image" },
                  { slot = "wrist_image", input = "observation/wrist_image" } }
robot.ignore  = nil
robot.state   = { inputs = { { input = "observation/state", size = 8 } } }
robot.actions.decode = nil
robot.norm.eps       = 1e-8
robot.execute        = 8
return robot
