-- Unfit: takes its time (tried with a budget of 60 us).
return policy {
  name = "budget", api = 1, version = 1,
  plan = function(S, F, D)
    local x = 0
    for i = 1, 15000 do x = x + i end
    D:note("sum", x)
    if F.nreq == 0 then return end
    local k = F.slack_us(0.99) // F.cost("decode", F.nreq, 0.99)
    for i = 1, F.nreq do
      if k >= 1 then D:decode(i, math.min(k, 5)) else D:pause(i) end
    end
  end,
}
