-- For measurements: no language at all, so that what it costs the actions can be seen.
return policy {
  name = "alone", api = 1, version = 1,
  admit = function(S, F, r) return false, "measuring actions alone" end,
  plan = function(S, F, D) end,
}
