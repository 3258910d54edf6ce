-- The same with one camera.
return extend("suite/pi0_views2.lua", {
  name      = "pi0_views1",
  inputs    = { without "cam_left_wrist" },
  nodes     = { prefill { name = "see", reads = { "cam_high", "state", "prompt" } } },
  resources = { kv.frame { name = "obs", tokens = 1 * 256 + 48 } },
})
