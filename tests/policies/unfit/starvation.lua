-- Unfit: the newest request goes on, the others wait until they are the newest.
return policy {
  name = "starvation", api = 1, version = 1,
  plan = function(S, F, D)
    if F.nreq == 0 then return end
    local k = F.slack_us(0.99) // F.cost("decode", 1, 0.99)
    if k >= 1 then D:decode(F.nreq, math.min(k, 5)) end
  end,
}
