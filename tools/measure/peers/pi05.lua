-- pi05.lua - pi0.5 on DROID without language, for the row pi05 (tools/bench_peers): its prompt is shorter, and a frame may take long.
local TXT_TOKENS <const> = 64

return extend("pi05_droid.lua", {
  name      = "peers_pi05",
  model     = { weights = "none" },
  frame     = { period_ms = 100000 },
  inputs    = { text { name = "prompt", max_tokens = TXT_TOKENS } },
  resources = { kv.frame { name = "obs", tokens = 2 * 256 + TXT_TOKENS }, without "lang" },
  nodes     = { action { name = "act", deadline = { ms = 90000 } }, without "talk" },
  policy    = use { name = "default" },
})
