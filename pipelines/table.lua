-- One graph for a long task on a table: a planner that remembers says the next skill once a second, its
-- sentence is the arm's prompt ten times a second, the arm says what it sees from the same prefill, and both
-- are remembered. The task and its scene: tools/table; what came out: doc/table.md.
local PICTURES <const> = 2 * 16                    -- rows of two pictures of 64 x 64; the third camera is masked
local TXT_TOKENS <const> = 32
local SAYS <const> = 12
local SEGMENTS <const> = 8
local FACTS <const> = 96                           -- tokens of all that is remembered
local GOAL <const> = 40
local ASKED <const> = FACTS + GOAL + 24
local ANSWER <const> = 28                          -- five skills and their commas

return pipeline {
  name   = "table",
  schema = 1,
  models = {
    arm     = model { arch = "pi05", weights = "pipelines/checkpoints/table_arm" },
    planner = model { arch = "qwen2", weights = "pipelines/checkpoints/table_planner" },
  },
  robot  = "robots/metaworld.lua",

  frame  = frame { period_ms = 100, clock = "external" },

  inputs = {
    image    { name = "observation/image", h = 64, w = 64 },
    image    { name = "observation/wrist_image", h = 64, w = 64 },
    tensor   { name = "observation/state", shape = { 4 } },
    text     { name = "goal", max_tokens = GOAL, default = "what did you do?" },
    segments { name = "memory", max_segments = SEGMENTS, tokens_each = ANSWER },
  },

  resources = {
    kv.frame    { name = "obs",   tokens = PICTURES + TXT_TOKENS },
    kv.requests { name = "lang",  tokens = PICTURES + TXT_TOKENS + SAYS, slots = 4, share_prefix = "obs" },
    buffer      { name = "chunk", shape = { 16, 4 } },
    kv.segments { name = "mem",     tokens = FACTS, store = "build/table.memory",
                  tiers = { host = "16MiB", disk = "16MiB" } },
    kv.frame    { name = "context", tokens = ASKED },
    kv.requests { name = "plans",   tokens = ASKED + ANSWER, slots = 2, share_prefix = "context" },
    kv.segments { name = "log",     tokens = FACTS, store = "build/table.log",
                  tiers = { host = "16MiB", disk = "16MiB" } },
    kv.frame    { name = "account", tokens = ASKED },
    kv.requests { name = "reports", tokens = ASKED + ANSWER, slots = 2, share_prefix = "account" },
  },

  nodes = {
    -- Ten times a second: the arm, which acts on the planner's newest sentence and says what it does.
    prefill { name = "see", model = "arm", writes = "obs",
              reads = { "observation/image", "observation/wrist_image", "observation/state", "plan" } },
    action  { name = "act", model = "arm", kv = "obs", steps = 10, out = "chunk",
              deadline = hard { ms = 90, on_miss = "hold", limit = 3 } },
    decode  { name = "talk", model = "arm", kv = "lang", spawn = every(1), max_tokens = SAYS,
              out = stream "seen", deadline = soft { ms = 2000, on_miss = "shed" } },

    -- Once a second: what is next? Two questions are two prompts, each with the same memory.
    memory_load { name = "recall", model = "planner", reads = { "memory" }, from = "mem", into = "context",
                  order = "as_put", recompute = { first = 1.0, decay = 1.0, floor = 1.0 } },
    prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context", after = "recall",
              template = "table_next", spawn = every(10) },
    decode  { name = "choose", model = "planner", kv = "plans", spawn = on_change("context"), supersede = true,
              max_tokens = 8, out = stream { name = "plan", default = "done" },
              deadline = soft { ms = 2000, on_miss = "continue" } },
    -- And what was done?
    memory_load { name = "recall_log", model = "planner", reads = { "memory" }, from = "log", into = "account",
                  order = "as_put", recompute = { first = 1.0, decay = 1.0, floor = 1.0 } },
    prefill { name = "review", model = "planner", reads = { "goal" }, writes = "account", after = "recall_log",
              template = "table_did", spawn = every(10) },
    decode  { name = "tell", model = "planner", kv = "reports", spawn = on_change("account"), supersede = true,
              max_tokens = ANSWER, out = stream "report", deadline = soft { ms = 2000, on_miss = "continue" } },

    remember { name = "keep_said", model = "planner", reads = { "plan" },   into = "mem", key = "said" },
    remember { name = "keep_did",  model = "planner", reads = { "report" }, into = "mem", key = "did" },
    remember { name = "keep_seen", model = "planner", reads = { "seen" },   into = "mem", key = "seen" },
    remember { name = "log_said",  model = "planner", reads = { "plan" },   into = "log", key = "said" },
    remember { name = "log_did",   model = "planner", reads = { "report" }, into = "log", key = "did" },
    remember { name = "log_seen",  model = "planner", reads = { "seen" },   into = "log", key = "seen" },
  },

  capture = capture { batch = { 1, 2, 4 }, k = { 4, 6, 12 }, ratio = { 1.0 } },
  policy  = use { name = "fill", params = { k = 6 } },
}
