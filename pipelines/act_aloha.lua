-- ACT on ALOHA in simulation, from a checkpoint that LeRobot has saved: its robot (cameras, state,
-- actions, statistics) is the checkpoint's own. There is no text: two pictures and the joints of
-- both arms become a chunk of 100 actions, 2 s at 50 Hz.
local CAMERAS <const> = { "observation.images.top", "observation.images.wrist" }
local ROWS <const> = 2 + #CAMERAS * 15 * 20 -- a constant row, the state's, the pixels of 480 x 640

local function camera(name)
  return image { name = name, h = 480, w = 640 }
end

return pipeline {
  name   = "act_aloha",
  schema = 1,
  model  = model { arch = "act", weights = "act_aloha", dtype = "f32" },

  frame  = frame { period_ms = 500, clock = "external", overrun = "skip_next" },

  inputs = {
    camera(CAMERAS[1]), camera(CAMERAS[2]),
    tensor { name = "observation.state", shape = { 14 } },
  },

  resources = {
    kv.frame { name = "obs", tokens = ROWS },
    buffer   { name = "chunk", shape = { 100, 14 } },
  },

  nodes = {
    prefill { name = "see", reads = { CAMERAS[1], CAMERAS[2], "observation.state" }, writes = "obs" },
    action  { name = "act", kv = "obs", out = "chunk",
              deadline = hard { ms = 450, on_miss = "last_chunk" } },
  },

  memory = memory { device = "2GiB" },
  policy = use { name = "default" },
}
