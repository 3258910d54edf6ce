-- OxyGen: one shared prefill a frame, and every live request takes k steps a frame in
-- one batch. The default plan shares already; what is left to say is k. A request that waits
-- for a prefill of its own takes k slices of it.
return policy {
  name = "oxygen", api = 1, version = 1,
  needs = { "decode.k" },
  params = { k = int { default = 5, min = 1, max = 32 } },
  plan = function(S, F, D)
    local k = F.params.k
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.slices > 0 then D:slices(r.prefill, k) end
      D:decode(i, k)
    end
  end,
}
