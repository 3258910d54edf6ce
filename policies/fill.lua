-- All that is soft, the most urgent first, in the time that hard work leaves over: a request that
-- waits for its prefix takes slices of that prefill, one that has it takes k steps.
local order, req = {}, nil      -- reused in every frame: no garbage
local rows, slices = {}, {}     -- by node: rows that decode, slices that run

local function sooner(a, b) return req[a].deadline_us < req[b].deadline_us end

return policy {
  name = "fill", api = 1, version = 1,
  needs = { "decode.k" },
  params = { k = int { default = 5, min = 1, max = 32 },
             q = num { default = 0.99, min = 0.5, max = 0.999 },
             margin = num { default = 0.95, min = 0.5, max = 1.0 } },
  plan = function(S, F, D)
    local n, k, q = F.nreq, F.params.k, F.params.q
    local room = F.slack_us(q) * F.params.margin
    req = F.req
    for i = 1, n do
      order[i] = i
      rows[req[i].node], slices[req[i].prefill] = 0, 0
    end
    for i = #order, n + 1, -1 do order[i] = nil end
    table.sort(order, sooner)                 -- stable: of equal deadlines the older one
    for at = 1, n do
      local i = order[at]
      local r = req[i]
      local wait, beside = r.slices, rows[r.node]
      D:priority(i, at - 1)
      if wait > 0 then
        local one = F.cost(r.prefill, 1, q)
        local fit = one * wait <= room and wait or math.floor(room / one)
        slices[r.prefill] = slices[r.prefill] + fit
        D:slices(r.prefill, slices[r.prefill])
        room, wait = room - fit * one, wait - fit
      end
      local more = k * F.cost(r.node, beside + 1, q)
      if beside > 0 then more = more - k * F.cost(r.node, beside, q) end
      if wait == 0 and more <= room then
        rows[r.node], room = beside + 1, room - more
        D:decode(i, k)
      else
        D:pause(i)
      end
    end
    D:note("room_us", room)
  end,
}
