-- SmolVLA on an SO-100 arm: three cameras, six joints, 30 Hz. The robot is read from the LeRobot checkpoint: its
-- cameras and their order, statistics, the number of actions that are executed. Names are those of
-- lerobot/smolvla_base; a fine-tuned checkpoint has its own, which an overlay of this file names.
local CAMERAS <const> = { "observation.images.camera1", "observation.images.camera2", "observation.images.camera3" }
local TXT_TOKENS <const> = 48
local OBS_TOKENS <const> = #CAMERAS * 64 + TXT_TOKENS + 1 -- 64 rows a picture, the task, the state

return pipeline {
  name   = "smolvla_so100",
  schema = 1,
  -- Activations are rounded where products read them: of LeRobot's own error in bf16 actions then have 0.39.
  model  = model { arch = "smolvla", weights = "smolvla_base", dtype = "bf16", round = "bf16" },

  -- A chunk is 50 actions at 30 Hz.
  frame  = frame { period_ms = 500, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = CAMERAS[1], h = 512, w = 512 },
    image  { name = CAMERAS[2], h = 512, w = 512, optional = true },
    image  { name = CAMERAS[3], h = 512, w = 512, optional = true },
    tensor { name = "observation.state", shape = { 6 } },
    text   { name = "task", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame { name = "obs", tokens = OBS_TOKENS },
    buffer   { name = "chunk", shape = { 50, 32 } },
  },

  nodes = {
    prefill { name = "see", writes = "obs",
              reads = { CAMERAS[1], CAMERAS[2], CAMERAS[3], "observation.state", "task" } },
    action  { name = "act", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 450, on_miss = "hold", limit = 3 } },
  },

  memory  = memory { device = "4GiB" },
}
