-- The bundled model, whose prompt is made of two texts that requests make.
return extend("demo_metaworld.lua", { name = "said_two",
  nodes = { decode { name = "talk", spawn = on_request(), deadline = without "deadline",
                     out = stream { name = "narration", default = "open the" } },
            decode { name = "tell", kv = "lang", spawn = on_request(), max_tokens = 12,
                     out = stream { name = "aside", default = "drawer" } },
            prefill { name = "see", reads = { "observation/image", "observation/wrist_image", "observation/state",
                                             prev "narration", prev "aside" } } } })
