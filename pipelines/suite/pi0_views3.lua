-- For measurements, not for robots: a frame of pi0 alone, three cameras and no language.
return extend("pi0_aloha.lua", {
  name  = "pi0_views3",
  nodes = { without "talk" },
})
