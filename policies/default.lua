-- The default plan as it is: prefill once and shared, hard nodes run, language beside
-- them pauses. What every other policy starts from, and falls back to.
return policy {
  name = "default", api = 1, version = 1,
  plan = function(S, F, D) end,
}
