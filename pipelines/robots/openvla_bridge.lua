-- A WidowX arm as in BridgeData V2, driven by OpenVLA: one camera, changes of the hand's pose, 5 Hz.
--
-- Action: position 3, rotation 3 (roll, pitch, yaw), gripper 1 (1 open, 0 closed), as the arm's own
-- server takes them: nothing is done to them after un-normalisation. The published client resizes its
-- 640 x 480 picture to 224 x 224 itself (JPEG round trip, TensorFlow's antialiased lanczos3); a
-- picture of another size than the model's is resized here as the checkpoint says.
-- bins: the model's actions are token ids; how many bins there are is the model's to say.
return {
  name = "openvla_bridge",

  cameras = { { slot = "full_image", input = "observation/image" } },
  resize  = "checkpoint",

  actions = { size = 7, relative = true, decode = { { op = "bins" } } },
  norm    = { mode = "quantile", asset = "bridge_orig" },
  prompt  = { template = "openvla" },

  rate_hz = 5,
  execute = 1,
}
