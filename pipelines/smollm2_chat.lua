-- SmolLM2 answers a prompt on a laptop: qwen_chat.lua with a small model and shorter texts.
-- SmolLM2-135M-Instruct: 30 layers, 3 KV heads x 64, 22.5 KiB of keys and values a token in bf16.
-- tools/convert/smollm2.sh brings its weights to build/smollm2.
local PROMPT <const> = 512
local ANSWER <const> = 256

return extend("qwen_chat.lua", {
  name      = "smollm2_chat",
  model     = model { arch = "llama", weights = "build/smollm2" },
  inputs    = { text { name = "prompt", max_tokens = PROMPT } },
  resources = { kv.frame { name = "context", tokens = PROMPT },
                kv.requests { name = "answers", tokens = PROMPT + ANSWER } },
  nodes     = { prefill { name = "read", template = "smollm2" } },
  memory    = memory { device = "3GiB" }, -- also for the larger model of that description, where no weights are here
})
