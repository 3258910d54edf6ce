-- text.lua - a text model read by itself: the prompt of the rows prefill and decode (tools/bench_peers).
local PROMPT <const> = 532
local ANSWER <const> = 64

return extend("qwen_chat.lua", {
  name      = "peers_text",
  model     = { arch = "llama", weights = "none" },
  inputs    = { text { name = "prompt", max_tokens = PROMPT } },
  resources = { kv.frame { name = "context", tokens = PROMPT },
                kv.requests { name = "answers", tokens = PROMPT + ANSWER, slots = 8 } },
  nodes     = { prefill { name = "read", template = "bare" },
                decode { name = "answer", max_tokens = ANSWER, deadline = { ms = 6000000 } } },
  capture   = { batch = { 1, 5, 8 }, k = { 1, 8 } },
  memory    = { device = "8GiB" },
})
