-- Unfit: fails now and then, in a frame in which nothing happens.
return policy {
  name = "failure", api = 1, version = 1,
  state = { frames = 0 },
  plan = function(S, F, D)
    S.frames = S.frames + 1
    if S.frames % 700 == 650 then error("the 650th frame", 0) end
    if F.nreq == 0 then return end
    local k = F.slack_us(0.99) // F.cost("decode", F.nreq, 0.99)
    for i = 1, F.nreq do
      if k >= 1 then D:decode(i, math.min(k, 5)) else D:pause(i) end
    end
  end,
}
