-- Earliest deadline first: as many requests as fit in the time that hard work leaves over take
-- k steps, the most urgent ones; the others wait.
local order, req = {}, nil      -- reused in every frame: no garbage

local function sooner(a, b) return req[a].deadline_us < req[b].deadline_us end

return policy {
  name = "edf", api = 1, version = 1,
  needs = { "decode.k" },
  params = { k = int { default = 5, min = 1, max = 32 },
             q = num { default = 0.99, min = 0.5, max = 0.999 } },
  admit = function(S, F, r)
    if F.nreq >= F.slots then return false, "no kv slot" end
    return true
  end,
  plan = function(S, F, D)
    local n, k, q = F.nreq, F.params.k, F.params.q
    req = F.req
    for i = 1, n do order[i] = i end
    for i = #order, n + 1, -1 do order[i] = nil end
    table.sort(order, sooner)                 -- stable: of equal deadlines the older one
    local fit, room = n, F.slack_us(q)
    while fit > 0 and k * F.cost("decode", fit, q) > room do fit = fit - 1 end
    for i = 1, fit do
      D:decode(order[i], k)
      D:priority(order[i], i - 1)
    end
    for i = fit + 1, n do D:pause(order[i]) end
    D:note("edf_batch", fit)
  end,
}
