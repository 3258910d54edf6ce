-- The table's pipeline without a planner: the arm is told the whole goal, for which its robot's prompt has room.
local robot = include "robots/metaworld.lua"
robot.prompt.max_tokens = 128
return extend("table.lua", { name = "table_no_planner", robot = robot,
  inputs    = { text { name = "prompt", max_tokens = 128 } },
  resources = { kv.frame { name = "obs", tokens = 2 * 16 + 128 },
                kv.requests { name = "lang", tokens = 2 * 16 + 128 + 12 } },
  nodes = { prefill { name = "see", reads = { "observation/image", "observation/wrist_image", "observation/state", "prompt" } } } })
