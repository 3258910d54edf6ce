-- The pipeline of chains.lua beside a second arm, which acts on the other of its two cameras: questions are
-- about pictures of which each arm's frames read one.
return extend("chains.lua", { name = "chains_lent",
  models = { other = model { arch = "pi05_causal", dtype = "f32" } },
  resources = { kv.frame { name = "other_obs", tokens = 16 + 12 }, buffer { name = "other_chunk", shape = { 6, 32 } } },
  nodes = { prefill { name = "other_see", model = "other", reads = { "side", "state", "prompt" }, writes = "other_obs" },
            action { name = "other_act", model = "other", kv = "other_obs", steps = 2, out = "other_chunk",
                     deadline = hard { ms = 950 } } } })
