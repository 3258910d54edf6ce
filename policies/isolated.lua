-- Baseline for comparisons, not for robots: nothing is shared and nothing is batched;
-- each request has a prefill of its own and runs to its end in the frame it came in,
-- as far as the largest captured k reaches.
return policy {
  name = "isolated", api = 1, version = 1,
  needs = { "decode.k" },
  plan = function(S, F, D)
    for i = 1, F.nreq do
      D:unshare(i)
      D:decode(i, F.req[i].max)    -- steps past the end are masked
      D:batch(i, i)                -- alone in its group
    end
  end,
}
