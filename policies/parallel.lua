-- Baseline for comparisons, not for robots: isolated, with language on a partition of its own, side
-- by side with the hard nodes, as if a second process ran it.
local talkers, beside = {}, nil
local slices = {}                -- by prefill, of all requests that wait for it

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
    for i = 1, F.nreq do slices[F.req[i].prefill] = 0 end
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.slices > 0 then
        slices[r.prefill] = slices[r.prefill] + r.slices
        D:slices(r.prefill, slices[r.prefill])
      end
      D:unshare(i)
      D:decode(i, r.max)
      D:batch(i, i)
    end
    for _, name in ipairs(talkers) do D:partition(name, beside) end
  end,
}
