-- For measurements: k steps a frame in one batch, on a partition of their own beside the hard nodes.
local talkers, beside = {}, nil

return policy {
  name = "beside", api = 1, version = 1,
  needs = { "decode.k", "decode.batch" },
  params = { k = int { default = 5, min = 1, max = 32 } },
  setup = function(S, T)
    local hard = ""
    for _, name in ipairs(T.nodes) do
      local node = T.node(name)
      if node.hard then hard = node.partition end
      if node.kind == "decode" then table.insert(talkers, name) end
    end
    for _, name in ipairs(T.partitions) do
      if name ~= hard then beside = beside or name end
    end
    if not beside then error("beside needs a partition next to that of the hard nodes") end
  end,
  plan = function(S, F, D)
    for i = 1, F.nreq do D:decode(i, F.params.k) end
    for _, name in ipairs(talkers) do D:partition(name, beside) end
  end,
}
