-- The same with two cameras: the plan has no room for a third.
return extend("suite/pi0_views3.lua", {
  name      = "pi0_views2",
  inputs    = { without "cam_right_wrist" },
  nodes     = { prefill { name = "see", reads = { "cam_high", "cam_left_wrist", "state", "prompt" } } },
  resources = { kv.frame { name = "obs", tokens = 2 * 256 + 48 } },
})
