-- Baseline for comparisons, not for robots: nothing is shared and nothing is batched;
-- each request has a prefill of its own and runs to its end in the frame it came in,
-- as far as the largest captured k reaches. One that waits for a prefill in slices takes them all.
local slices = {}                -- by prefill, of all requests that wait for it

return policy {
  name = "isolated", api = 1, version = 1,
  needs = { "decode.k" },
  plan = function(S, F, D)
    for i = 1, F.nreq do slices[F.req[i].prefill] = 0 end
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.slices > 0 then
        slices[r.prefill] = slices[r.prefill] + r.slices
        D:slices(r.prefill, slices[r.prefill])
      end
      D:unshare(i)
      D:decode(i, r.max)         -- steps past the end are masked
      D:batch(i, i)              -- alone in its group
    end
  end,
}
