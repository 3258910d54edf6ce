-- The largest k whose cost fits the time that hard work leaves over, for all requests alike;
-- where one waits for a prefill of its own, as many slices of that come first as fit. A
-- frame that was late because of the plan halves the cap on k; every other frame lifts it a little.
return policy {
  name = "slack_k", api = 1, version = 1,
  needs = { "decode.k" },
  params = { k_max = int { default = 8, min = 1, max = 32 },
             margin = num { default = 0.95, min = 0.5, max = 1.0 } },
  state = { cap = 8.0 },
  plan = function(S, F, D)
    local n = F.nreq
    if n == 0 then return end
    local room = F.slack_us(0.99) * F.params.margin
    for i = 1, n do
      local r = F.req[i]
      if r.slices > 0 then                      -- one prefill is under way at a time
        local one = F.cost(r.prefill, 1, 0.99)
        local fit = math.max(0, math.min(r.slices, math.floor(room / one)))
        D:slices(r.prefill, fit)
        room = room - fit * one
        break
      end
    end
    local steps = room / F.cost("decode", n, 0.99)
    local k = math.floor(math.min(S.cap, F.params.k_max, steps))
    for i = 1, n do
      if k >= 1 then D:decode(i, k) else D:pause(i) end
    end
    D:note("k", k)
  end,
  observe = function(S, F, R)
    if R.missed and R.cause == "plan" then
      S.cap = math.max(1, S.cap / 2)
    else
      S.cap = math.min(F.params.k_max, S.cap + 0.1)
    end
  end,
  migrate = function(old) return old end,     -- a reload keeps the cap
}
