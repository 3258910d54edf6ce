-- For measurements, not for robots: one text at a time, so that decoding is of batch 1.
return extend("pi05_libero.lua", {
  name    = "one_text",
  nodes   = { decode { name = "talk", spawn = every(40), max_tokens = 32 } },
  capture = capture { batch = { 1 }, k = { 1, 8 } },
})
