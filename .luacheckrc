-- luacheck: what the sandbox offers to scripts, see doc/policies.md.
std = {
  read_globals = { "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type",
    "math", table = { fields = { "insert", "remove", "sort" } }, string = { fields = { "format" } } },
}
max_line_length = 120
files["policies"] = {
  read_globals = { "policy", "int", "num" },
  ignore = { "212" }, -- hooks name all their arguments
}
