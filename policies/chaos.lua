-- Random legal decisions, the same for the same `seed`: for tests, not for robots. Whatever it
-- decides, actions and sentences keep their bytes.
return policy {
  name = "chaos", api = 1, version = 1,
  needs = { "decode.k" },
  params = { seed = int { default = 1, min = 0, max = 1000000 } },
  plan = function(S, F, D)
    local shift = F.params.seed * 0.6180339887498949
    local function below(n) return math.floor((F.rng() + shift) % 1 * n) end
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.fresh and below(2) == 0 then D:unshare(i) end
      if below(4) == 0 then D:pause(i) else D:decode(i, 1 + below(r.max)) end
      D:batch(i, below(4))
      D:priority(i, below(10))
    end
  end,
}
