-- The bundled model, whose newest narration is its own next instruction.
return extend("demo_metaworld.lua", { name = "text_loop",
  nodes = { decode { name = "talk", out = stream { name = "narration", default = "press the button" } },
            prefill { name = "see", reads = { "observation/image", "observation/wrist_image",
                                             "observation/state", "narration" } } } })
