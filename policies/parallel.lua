-- Baseline for comparisons, not for robots: isolated, with language on a partition of its own, side
-- by side with the hard nodes, as if a second process ran it.
local talkers, beside = {}, nil

return policy {
  name = "parallel", api = 1, version = 1,
  needs = { "decode.k" },
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
    if not beside then error("parallel needs a partition beside that of the hard nodes") end
  end,
  plan = function(S, F, D)
    for i = 1, F.nreq do
      D:unshare(i)
      D:decode(i, F.req[i].max)
      D:batch(i, i)
    end
    for _, name in ipairs(talkers) do D:partition(name, beside) end
  end,
}
