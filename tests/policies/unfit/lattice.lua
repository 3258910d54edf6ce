-- Unfit for a pipeline that captures no k of 2: what it asks for is never what it gets.
return policy {
  name = "lattice", api = 1, version = 1,
  plan = function(S, F, D)
    if F.nreq == 0 then return end
    local fits = F.slack_us(0.99) >= 2 * F.cost("decode", F.nreq, 0.99)
    for i = 1, F.nreq do
      if fits then D:decode(i, 2) else D:pause(i) end
    end
  end,
}
