-- GR00T N1.5 on a Fourier GR-1: one camera, arms and hands, 20 Hz. The robot is read from the checkpoint's
-- experiment_cfg/metadata.json: parts of the state as sines and cosines, actions from the smallest to the largest value
-- of the training. `tectum init CHECKPOINT --embodiment gr1` writes it out as a file to edit.
local TXT_TOKENS <const> = 256 -- the chat around the instruction, and the instruction
local OBS_TOKENS <const> = 256 + TXT_TOKENS

return pipeline {
  name   = "groot_gr1",
  schema = 1,
  model  = model { arch = "groot_n15", weights = "gr00t_n1_5", embodiment = "gr1", dtype = "bf16", round = "mixed" },

  -- A chunk is 16 actions at 20 Hz.
  frame  = frame { period_ms = 800, clock = "external", overrun = "skip_next" },

  inputs = {
    image  { name = "video.ego_view", h = 224, w = 224 },
    tensor { name = "state.left_arm", shape = { 7 } },
    tensor { name = "state.right_arm", shape = { 7 } },
    tensor { name = "state.left_hand", shape = { 6 } },
    tensor { name = "state.right_hand", shape = { 6 } },
    text   { name = "annotation.human.action.task_description", max_tokens = TXT_TOKENS },
  },

  resources = {
    kv.frame { name = "obs", tokens = OBS_TOKENS },
    buffer   { name = "chunk", shape = { 16, 32 } },
  },

  nodes = {
    prefill { name = "see", writes = "obs",
              reads = { "video.ego_view", "state.left_arm", "state.right_arm", "state.left_hand", "state.right_hand",
                        "annotation.human.action.task_description" } },
    action  { name = "act", kv = "obs", steps = 4, out = "chunk",
              deadline = hard { ms = 700, on_miss = "hold", limit = 3 } },
  },

  memory  = memory { device = "12GiB" },
}
