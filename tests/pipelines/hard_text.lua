-- The arm of two_models.lua, which has to have said something by the end of each frame.
return extend("two_models_arm.lua", { name = "hard_text",
  nodes = { action { name = "act", deadline = hard { ms = 400 } },
            decode { name = "talk", spawn = every(1), deadline = hard { ms = 800 } } } })
