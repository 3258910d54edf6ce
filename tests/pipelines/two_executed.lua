-- Two robots that carry out different numbers of a chunk's rows: the left one is asked every second frame, so that in
-- between its kept chunk moves by its own number.
local function robot_of(side, execute)
  return { name = side, cameras = { { input = "cam", slot = "image" } }, resize = "resize-naive",
            state = { inputs = { { input = "state", size = 5 } } }, actions = { size = 5 }, norm = { mode = "none" },
            prompt = { input = "task", template = "qwen3_vl_words1", max_tokens = 30 }, rate_hz = 10, execute = execute }
end
local function m() return model { arch = "groot_n17", weights = "none", dtype = "f32" } end
local function see(side)
  return prefill { name = "see_" .. side, model = side, writes = "obs_" .. side, spawn = side == "left" and every(2) or nil,
                   reads = { side .. "/cam", side .. "/state", side .. "/task" } }
end
local function act(side)
  return action { name = "act_" .. side, model = side, kv = "obs_" .. side, out = "chunk_" .. side, steps = 4, spawn = side == "left" and every(2) or nil,
                  deadline = hard { ms = 700, on_miss = "hold" } }
end
return pipeline { name = "two", schema = 1,
  models = { left = m(), right = m() },
  robots = { left = robot_of("left", 3), right = robot_of("right", 1) },
  frame  = frame { period_ms = 800, clock = "external" },
  inputs = {
    image { name = "left/cam", h = 32, w = 32 }, tensor { name = "left/state", shape = { 5 } }, text { name = "left/task", max_tokens = 40 },
    image { name = "right/cam", h = 32, w = 32 }, tensor { name = "right/state", shape = { 5 } }, text { name = "right/task", max_tokens = 40 },
  },
  resources = { kv.frame { name = "obs_left", tokens = 100 }, kv.frame { name = "obs_right", tokens = 100 },
                buffer { name = "chunk_left", shape = { 7, 8 } }, buffer { name = "chunk_right", shape = { 7, 8 } } },
  nodes = { see("left"), act("left"), see("right"), act("right") },
}
