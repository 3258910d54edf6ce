-- Qwen2.5 plans for a house robot: it ranks 214 skills by how likely each is as the next step of
-- what it was told, all of them in one forward behind the prompt. "say" answers the same prompt with
-- one of them, token by token along the list.
local PROMPT <const> = 512
local skills <const> = include("skills/household.lua")

return pipeline {
  name   = "qwen_skills",
  schema = 1,
  model  = model { arch = "qwen2", weights = "qwen2.5-1.5b", dtype = "bf16" },

  frame  = frame { period_ms = 200, clock = "external", overrun = "skip_next" },

  inputs = { text { name = "prompt", max_tokens = PROMPT } },

  resources = {
    kv.frame    { name = "context", tokens = PROMPT },
    kv.requests { name = "answers", tokens = PROMPT + 16, slots = 1, share_prefix = "context" },
  },

  nodes = {
    prefill { name = "read", reads = { "prompt" }, writes = "context", template = "skills" },
    score   { name = "choose", kv = "context", candidates = skills, spawn = every(1), supersede = true,
              out = stream "skill", deadline = soft { ms = 1000, on_miss = "continue" } },
    decode  { name = "say", kv = "answers", choices = skills, max_tokens = 16, spawn = on_request(),
              out = stream "said", deadline = soft { ms = 5000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1 }, k = { 1, 16 } },
  memory  = memory { device = "8GiB" },
}
