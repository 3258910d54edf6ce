-- The same with the second prompt read by a model of its own.
return extend("chains.lua", {
  name   = "chains_two_models",
  models = { arm = model { arch = "pi05" }, planner = model { arch = "pi05_causal", dtype = "f32" } },
  nodes  = { prefill { name = "look", model = "planner" }, decode { name = "answer", model = "planner" } },
})
