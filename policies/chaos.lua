-- Random legal decisions, the same for the same `seed`: for tests, not for robots. Whatever it
-- decides, the actions that leave and sentences keep their bytes.
local function below(F, n)       -- of a stream of its own for each seed
  local x = (math.floor(F.rng() * 2 ^ 53) ~ F.params.seed * 0x9E3779B97F4A7C15)
  x = x * 0x2545F4914F6CDD1D
  return (x ~ x >> 29) % n
end

return policy {
  name = "chaos", api = 1, version = 1,
  params = { seed = int { default = 1, min = 0, max = 1000000 } },
  setup = function(S, T)
    S.optional = {}
    for _, name in ipairs(T.nodes) do
      if T.node(name).optional then table.insert(S.optional, name) end
    end
  end,
  plan = function(S, F, D)
    for _, name in ipairs(S.optional) do
      if below(F, 4) == 0 then D:skip(name, "chaos") else D:run(name) end
    end
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.fresh and below(F, 2) == 0 then D:unshare(i) end
      if below(F, 4) == 0 then D:pause(i) else D:decode(i, 1 + below(F, r.max)) end
      if r.slices > 0 then D:slices(r.prefill, below(F, 4)) end
      D:batch(i, below(F, 4))
      D:priority(i, below(F, 10))
    end
  end,
}
