-- One model whose newest remark is its own next prompt.
return extend("two_models_arm.lua", { name = "text_remark",
  nodes = { decode { name = "talk", out = stream { name = "talk", default = "stay" } },
            prefill { name = "see", reads = { "cam", "state", "talk" } } } })
