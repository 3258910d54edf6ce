-- Unfit: cannot stand an input that is late.
return policy {
  name = "chaos_unfit", api = 1, version = 1,
  plan = function(S, F, D)
    if F.late.state > 0 then error("the state came late") end
    if F.nreq == 0 then return end
    local k = F.slack_us(0.99) // F.cost("decode", F.nreq, 0.99)
    for i = 1, F.nreq do
      if k >= 1 then D:decode(i, math.min(k, 5)) else D:pause(i) end
    end
  end,
}
