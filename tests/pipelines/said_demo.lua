-- The bundled model, which acts on what it has said in the same frame.
return extend("demo_metaworld.lua", { name = "said_demo",
  resources = { kv.frame { name = "task", tokens = 64 } },
  nodes = { decode { name = "talk", deadline = without "deadline" },
            prefill { name = "look", writes = "task", after = "talk",
                      reads = { "observation/image", "observation/wrist_image", "observation/state", "narration" } },
            action { name = "act", kv = "task" } } })
