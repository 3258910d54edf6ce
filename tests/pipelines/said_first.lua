-- The arm of two_models.lua says something first, which is the prompt that it acts on.
return extend("two_models_arm.lua", { name = "said_first",
  resources = { kv.frame { name = "task", tokens = 60 } },
  nodes = { decode { name = "talk", spawn = every(1), supersede = true, out = stream { name = "talk", default = "stay" } },
            prefill { name = "look", reads = { "cam", "state", "talk" }, writes = "task", after = "talk" },
            action { name = "act", kv = "task" } } })
