-- ALOHA: two ViperX arms, up to four cameras, 50 Hz.
--
-- State and action: 6 joints and a gripper for each arm, left first. A wrist camera that is not
-- sent is masked. cam_low is accepted, as openpi does, and not looked at: the models have no slot
-- for it. Variants bear the names of openpi's configurations.
local parts = include("robots/aloha_parts.lua")

local z_score = {
  norm   = { mode = "mean_std" },
  prompt = { template = "plain", state = false, max_tokens = 48 },
}

local function task(sentence)
  return {
    norm   = z_score.norm,
    prompt = { template = "plain", state = false, max_tokens = 48, default = sentence },
  }
end

return {
  name = "aloha",

  cameras = {
    { slot = "base_0_rgb", input = "images/cam_high", layout = "chw" },
    { slot = "left_wrist_0_rgb", input = "images/cam_left_wrist", layout = "chw",
      missing = "mask" },
    { slot = "right_wrist_0_rgb", input = "images/cam_right_wrist", layout = "chw",
      missing = "mask" },
  },
  ignore = { "images/cam_low" },
  resize = "openpi_pil",

  state   = { inputs = { { input = "state", size = 14 } }, ops = parts.state },
  actions = {
    size = 14,
    ops  = { parts.deltas, parts.actions[1], parts.actions[2], parts.actions[3] },
  },
  norm    = { mode = "quantile", asset = "trossen" },
  prompt  = { template = "with_state", state = true, max_tokens = 200 },

  rate_hz = 50,
  execute = 25,

  variant  = "pi05_aloha",
  variants = {
    pi05_aloha           = {},
    pi0_aloha            = z_score,
    pi0_aloha_towel      = task("fold the towel"),
    pi0_aloha_tupperware = task("open the tupperware and put the food on the plate"),
    pi0_aloha_pen_uncap  = task("uncap the pen"),
  },
}
