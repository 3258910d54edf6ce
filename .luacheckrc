-- luacheck: what the sandbox offers to scripts, see doc/policies.md and graph/load/fields.def.
std = {
  read_globals = { "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type",
    "math", table = { fields = { "insert", "remove", "sort" } }, string = { fields = { "format" } } },
}
max_line_length = 120
files["policies"] = {
  read_globals = { "policy", "int", "num" },
  ignore = { "212" }, -- hooks name all their arguments
}
files["tools/gpu"] = {
  read_globals = { "policy", "int", "num" },
  ignore = { "212" },
}
files["tests/policies"] = {
  read_globals = { "tectum", "policy", "int", "num" },
  ignore = { "212" },
}
files["pipelines/graphs"] = { max_line_length = 160 } -- a node a line
files["pipelines"] = {
  read_globals = { "given",
    "action", "buffer", "capture", "decode", "every", "extend", "frame", "guard", "hard", "image",
    "include", "kv", "memory", "memory_load", "model", "on_request", "on_change", "pipeline", "policy",
    "prefill", "prev", "recompute", "remember", "score", "segments", "sm", "soft", "stream", "tensor", "text", "tiers",
    "use", "without",
  },
}
