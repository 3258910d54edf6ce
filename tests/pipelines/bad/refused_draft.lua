-- A small model would have to read the memory, too.
return pipeline {
  name = "refused_draft", schema = 1, models = { main = model { arch = "qwen2" }, small = model { arch = "qwen2" } },
  frame = frame { period_ms = 100 },
  inputs = { text { name = "goal", max_tokens = 8 }, segments { name = "past", max_segments = 3, tokens_each = 8 } },
  resources = { kv.segments { name = "mem", tokens = 32 }, kv.frame { name = "context", tokens = 80 },
                kv.requests { name = "answers", tokens = 96, slots = 1, share_prefix = "context" } },
  nodes = { memory_load { name = "recall", model = "main", reads = { "past" }, from = "mem", into = "context" },
            prefill { name = "read", model = "main", reads = { "goal" }, writes = "context", after = "recall", template = "facts" },
            decode { name = "say", model = "main", kv = "answers", spawn = on_change(), max_tokens = 8, out = stream "said",
                     draft = { model = "small", tokens = 2 } } },
  capture = capture { batch = { 1 }, k = { 1 }, ratio = { 1.0 } },
}
