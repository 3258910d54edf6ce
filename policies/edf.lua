-- Earliest deadline first: in the time that hard work leaves over slices of the prefills that requests
-- wait for run, then as many requests as fit take k steps, the most urgent ones; the others wait.
local order, req = {}, nil      -- reused in every frame: no garbage
local slices, ready = {}, {}    -- by prefill: slices that run; requests that can decode, in order

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
    for i = 1, n do order[i], slices[req[i].prefill] = i, 0 end
    for i = #order, n + 1, -1 do order[i] = nil end
    table.sort(order, sooner)                 -- stable: of equal deadlines the older one
    local room, can = F.slack_us(q), 0
    for at = 1, n do
      local i = order[at]
      local wait, prefill = req[i].slices, req[i].prefill
      if wait > 0 then
        local one = F.cost(prefill, 1, q)
        local run = one * wait <= room and wait or math.max(0, math.floor(room / one))
        slices[prefill] = slices[prefill] + run
        D:slices(prefill, slices[prefill])
        room, wait = room - run * one, wait - run
      end
      if wait == 0 then
        can = can + 1
        ready[can] = i
      else
        D:pause(i)
      end
    end
    local fit = can
    while fit > 0 and k * F.cost("decode", fit, q) > room do fit = fit - 1 end
    for at = 1, fit do
      D:decode(ready[at], k)
      D:priority(ready[at], at - 1)
    end
    for at = fit + 1, can do D:pause(ready[at]) end
    D:note("edf_batch", fit)
  end,
}
