-- The other half of oxygen: requests of several frames are decoded in one batch, k steps
-- a frame, but each pays for a prefill of its own.
return policy {
  name = "batch_only", api = 1, version = 1,
  needs = { "decode.k", "decode.batch" },
  params = { k = int { default = 5, min = 1, max = 32 } },
  plan = function(S, F, D)
    local k = F.params.k
    for i = 1, F.nreq do
      D:unshare(i)
      D:decode(i, k)
    end
  end,
}
