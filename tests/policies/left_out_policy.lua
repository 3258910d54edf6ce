-- What left_out.t and tests/tectum_actions.c run: `act` is left out of each third frame, the first
-- among them; text goes on.
return policy {
  name = "left_out_policy", api = 1, version = 1,
  plan = function(S, F, D)
    for i = 1, F.nreq do D:decode(i, 5) end
    if F.index % 3 == 0 then D:skip("act", "rests") end
  end,
}
