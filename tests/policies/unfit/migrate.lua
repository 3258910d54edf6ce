-- Unfit: what it has learnt does not survive a reload.
return policy {
  name = "migrate", api = 1, version = 1,
  state = { frames = 0 },
  plan = function(S, F, D)
    S.frames = math.min(S.frames + 1, 10)
    if F.nreq == 0 or S.frames < 10 then return end
    local k = F.slack_us(0.99) // F.cost("decode", F.nreq, 0.99)
    for i = 1, F.nreq do
      if k >= 1 then D:decode(i, math.min(k, 5)) else D:pause(i) end
    end
  end,
  migrate = function() return { frames = 5 } end,
}
