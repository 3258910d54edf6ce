-- pi0 on ALOHA: pi0.5's pipeline with the older model. Its state is a token of the action expert,
-- not a part of the prompt, so prompts are short.
local OBS_TOKENS <const> = 3 * 256 + 48

return extend("pi05_aloha.lua", {
  name    = "pi0_aloha",
  model   = { arch = "pi0", weights = "pi0_base" },
  variant = "pi0_aloha",
  inputs  = { text { name = "prompt", max_tokens = 48 } },
  resources = {
    kv.frame    { name = "obs",  tokens = OBS_TOKENS },
    kv.requests { name = "lang", tokens = OBS_TOKENS + 64 },
  },
})
