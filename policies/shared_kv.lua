-- Half of oxygen: requests share the frame's prefill, but each is decoded alone and to
-- its end in the frame it came in. With batch_only it shows what each half gains.
local slices = {}                -- by prefill, of all requests that wait for it

return policy {
  name = "shared_kv", api = 1, version = 1,
  needs = { "decode.k" },
  plan = function(S, F, D)
    for i = 1, F.nreq do slices[F.req[i].prefill] = 0 end
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.slices > 0 then
        slices[r.prefill] = slices[r.prefill] + r.slices
        D:slices(r.prefill, slices[r.prefill])
      end
      D:decode(i, r.max)
      D:batch(i, i)
    end
  end,
}
