-- ALOHA in simulation (gym-aloha): one camera, absolute joint actions.
local parts = include("robots/aloha_parts.lua")

return {
  name = "aloha_sim",

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
  actions = { size = 14, ops = parts.actions },
  norm    = { mode = "mean_std" }, -- the checkpoint's only asset
  prompt  = { template = "plain", max_tokens = 48, default = "Transfer cube" },

  rate_hz = 50,
  execute = 10,

  variant  = "pi0_aloha_sim",
  variants = { pi0_aloha_sim = {} },
}
