-- The bundled planner with a memory: observations put, change and remove facts, a goal asks about them. Facts
-- and their keys and values are kept in a file, so the next run still knows them (doc/memory.md).
local SEGMENTS <const> = 20      -- facts of a prompt
local EACH <const> = 16       -- tokens of a fact, at most; the trained ones have 7
local ALL <const> = SEGMENTS * 8 -- tokens of a prompt's facts together
local GOAL <const> = 16
local ANSWER <const> = 6
local PROMPT <const> = ALL + 32 -- the beginning and the goal too

return pipeline {
  name   = "demo_memory",
  schema = 1,
  model  = model { arch = "qwen2", weights = "pipelines/checkpoints/planner" },

  frame  = frame { period_ms = 100, clock = "on_request" },

  inputs = {
    text     { name = "goal", max_tokens = GOAL },
    segments { name = "memory", max_segments = SEGMENTS, tokens_each = EACH },
  },

  resources = {
    kv.segments { name = "mem", tokens = ALL, stable_steps = 10, store = "build/demo.memory",
                  tiers = { host = "64MiB", disk = "64MiB" } },
    kv.frame    { name = "ctx", tokens = PROMPT },
    kv.requests { name = "answers", tokens = PROMPT + ANSWER, slots = 4, share_prefix = "ctx" },
  },

  nodes = {
    memory_load { name = "recall", reads = { "memory" }, from = "mem", into = "ctx", order = "as_put",
                  recompute = { first = 1.0, decay = 1.0, floor = 1.0 } },
    prefill     { name = "ask", reads = { "goal" }, writes = "ctx", after = "recall", template = "facts" },
    decode      { name = "answer", kv = "answers", spawn = every(1), max_tokens = ANSWER,
                  out = stream "answer", deadline = soft { ms = 2000, on_miss = "continue" } },
  },

  capture = capture { batch = { 1 }, k = { 6 }, ratio = { 0.25, 0.5, 1.0 } },
}
