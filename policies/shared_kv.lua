-- Half of oxygen: requests share the frame's prefill, but each is decoded alone and to
-- its end in the frame it came in. With batch_only it shows what each half gains.
return policy {
  name = "shared_kv", api = 1, version = 1,
  needs = { "decode.k" },
  plan = function(S, F, D)
    for i = 1, F.nreq do
      D:decode(i, F.req[i].max)
      D:batch(i, i)
    end
  end,
}
