-- ALOHA: two ViperX arms, up to four cameras, 50 Hz.
--
-- State and action: 6 joints and a gripper for each arm, left first: entries 1..7 and 8..14. A wrist
-- camera that is not sent is masked. cam_low is accepted, as openpi does, and not looked at: the
-- models have no slot for it. Variants bear the names of openpi's configurations.

-- Between ALOHA's units and those the models were trained with (openpi: adapt_to_pi). Joints 2 and 3
-- of each arm turn the other way. The state's gripper is how far the fingers are open (0..1,
-- linear); the models know the angle of its horn.
local grippers <const> = { 7, 14 }
local flips <const>    = { op = "multiply", at = { 2, 3, 9, 10 }, by = -1 }
local deltas <const>   = { op = "add_state", at = { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 } }

local state_to_model <const> = {
  flips,
  -- Opening in metres, then the angle of a 22 mm horn on a 36 mm arm, then the models' range.
  { op = "unit_to_range", at = grippers, low = 0.01844, high = 0.05800 },
  { op = "linkage", at = grippers, horn = 0.022, arm = 0.036 },
  { op = "range_to_unit", at = grippers, low = 0.5476, high = 1.6296 },
}

-- The models' zero angle first, then the range of the follower's gripper.
local shift <const>  = { op = "shift", at = grippers, by = 0.5476 }
local follow <const> = { op = "range_to_unit", at = grippers, low = -0.6213, high = 1.4910 }

-- A z-score model without the state in its prompt.
local function plain(fields)
  return {
    norm    = { mode = "mean_std", asset = fields.asset },
    prompt  = { template = "plain", state = false, max_tokens = 48, default = fields.prompt },
    actions = fields.actions,
    execute = fields.execute,
    metadata = fields.metadata,
  }
end

return {
  name = "aloha",

  cameras = {
    { slot = "base_0_rgb", input = "images/cam_high" },
    { slot = "left_wrist_0_rgb", input = "images/cam_left_wrist",
      missing = "mask" },
    { slot = "right_wrist_0_rgb", input = "images/cam_right_wrist",
      missing = "mask" },
  },
  ignore = { "images/cam_low" },
  resize = "openpi_pil",

  state   = { inputs = { { input = "state", size = 14 } }, ops = state_to_model },
  -- Joint actions are differences from the state, the grippers' are not.
  actions = { size = 14, ops = { deltas, flips, shift, follow } },
  norm    = { mode = "quantile", asset = "trossen" },
  prompt  = { template = "with_state", state = true, max_tokens = 200 },

  rate_hz = 50,
  execute = 25,

  -- Where openpi's client moves the arms first.
  metadata = { reset_pose = { 0, -1.5, 1.5, 0, 0, 0 } },

  variant  = "pi05_aloha",
  variants = {
    pi05_aloha           = {},
    pi0_aloha            = plain {},
    pi0_aloha_towel      = plain { prompt = "fold the towel" },
    pi0_aloha_tupperware = plain { prompt = "open the tupperware and put the food on the plate" },
    pi0_aloha_pen_uncap  = plain { prompt = "uncap the pen", metadata = {} },
    -- gym-aloha: absolute joint actions, and its own statistics.
    pi0_aloha_sim = plain {
      prompt  = "Transfer cube",
      asset   = "lerobot/aloha_sim_transfer_cube_human",
      actions = { ops = { flips, shift, follow } },
      execute = 10,
      metadata = {},
    },
  },
}
