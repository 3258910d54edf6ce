-- The other half of oxygen: requests of several frames are decoded in one batch, k steps
-- a frame, but each pays for a prefill of its own.
local slices = {}                -- by prefill, of all requests that wait for it

return policy {
  name = "batch_only", api = 1, version = 1,
  needs = { "decode.k", "decode.batch" },
  params = { k = int { default = 5, min = 1, max = 32 } },
  plan = function(S, F, D)
    local k = F.params.k
    for i = 1, F.nreq do slices[F.req[i].prefill] = 0 end
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.slices > 0 then
        slices[r.prefill] = slices[r.prefill] + r.slices
        D:slices(r.prefill, slices[r.prefill])
      end
      D:unshare(i)
      D:decode(i, k)
    end
  end,
}
