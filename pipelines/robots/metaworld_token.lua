-- Meta-World's Sawyer arm driven by an OpenVLA: a drawing of 28 x 28 of hand and button, which the
-- client makes (tools/demo/slide.py); changes of the hand's place. The bundled demo of a ring.
--
-- Action: displacement of the hand's goal 3 and rotation 3 (which this arm does not have: zeros), gripper 1,
-- all in -1..1. The robot goes on with an action until the next one comes.
return {
  name = "metaworld_token",

  cameras = { { slot = "full_image", input = "observation/image" } },
  resize  = "checkpoint",

  actions = { size = 7, relative = true, decode = { { op = "bins" } } },
  norm    = { mode = "quantile", asset = "metaworld" },
  prompt  = { template = "openvla" },

  rate_hz = 10,
  execute = 1,
}
