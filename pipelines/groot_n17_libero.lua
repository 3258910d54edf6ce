-- GR00T N1.7 in the LIBERO simulation, fine-tuned by LeRobot: a camera and one at the wrist, 20 Hz. The robot is read
-- from the LeRobot checkpoint: cameras and their order, statistics, what becomes of the gripper. Names are those of
-- LeRobot's LIBERO data sets; `tectum init CHECKPOINT` writes yours out as a file to edit.
local CAMERAS <const> = { "observation.images.image", "observation.images.image2" }
local TXT_TOKENS <const> = 256 -- the chat around the task, and the task
local OBS_TOKENS <const> = #CAMERAS * 64 + TXT_TOKENS -- 64 rows a picture

return pipeline {
  name   = "groot_n17_libero",
  schema = 1,
  model  = model { arch = "groot_n17", weights = "groot_n17_libero", dtype = "bf16" },

  -- A chunk is 40 actions; 8 of them are executed at 20 Hz before the next observation.
  frame  = frame { period_ms = 400, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = CAMERAS[1], h = 256, w = 256 },
    image  { name = CAMERAS[2], h = 256, w = 256 },
    tensor { name = "observation.state", shape = { 8 } },
    text   { name = "task", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame { name = "obs", tokens = OBS_TOKENS },
    buffer   { name = "chunk", shape = { 40, 132 } },
  },

  nodes = {
    prefill { name = "see", writes = "obs", reads = { CAMERAS[1], CAMERAS[2], "observation.state", "task" } },
    action  { name = "act", kv = "obs", steps = 4, out = "chunk",
              deadline = hard { ms = 350, on_miss = "hold", limit = 3 } },
  },

  memory  = memory { device = "12GiB" },
}
