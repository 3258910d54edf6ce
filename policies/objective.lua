-- OxyGen's objective (Eq. 5-6), solved in every frame from measured costs: of the captured k the one
-- with most tokens a second such that no frame is longer than f_min allows. When the requests in
-- flight do not fit, the (rows, k) with most tokens a second that does, the most urgent rows first;
-- when nothing fits, no language. Slices of a prefill that requests wait for come first, as many as
-- that frame rate allows.
local ks, order, req = nil, {}, nil
local slices = {}                           -- by prefill: slices that run

local function sooner(a, b) return req[a].deadline_us < req[b].deadline_us end

local function frame_us(F, hard, rows, k)
  return rows > 0 and hard + k * F.cost("decode", rows, F.params.q) or hard
end

local function fast_enough(F, us) return F.horizon * 1000000 >= F.params.f_min * us end

-- The best k when a request of n tokens comes every m frames for ever, or nil.
local function sustained(F, hard, n)
  local m, period, best, least = F.params.every, F.params.period_us, nil, nil
  for _, k in ipairs(ks) do
    local life, wall, worst = (n + k - 1) // k, 0, 0
    for j = 0, math.min(m, life) - 1 do       -- frames after a request came
      local us = frame_us(F, hard, (life - j + m - 1) // m, k)
      wall, worst = wall + math.max(us, period), math.max(worst, us)
    end
    wall = wall + math.max(m - life, 0) * math.max(hard, period)
    local request_slots = (life + m - 1) // m
    if request_slots <= F.slots and fast_enough(F, worst) and (not best or wall <= least) then
      best, least = k, wall                   -- n tokens in that time, whatever k
    end
  end
  return best
end

-- Of what fits one frame, the rows and k with most tokens a second; 0, 0 when nothing does.
local function limited(F, hard, live)
  local rows, best, us = 0, 0, 1
  for _, k in ipairs(ks) do
    for b = live, 1, -1 do
      local t = frame_us(F, hard, b, k)
      local new, old = b * k * us, rows * best * t
      if fast_enough(F, t) and (new > old or (new == old and k > best)) then
        rows, best, us = b, k, t
      end
    end
  end
  return best, rows
end

-- Slices of what requests wait for, up to the longest frame: the time they take. Leaves those that can
-- decode behind them in `order`, and how many.
local function wait_for(F, D, hard)
  local room, took, can = F.horizon * 1000000 / F.params.f_min - hard, 0, 0
  for i = 1, F.nreq do slices[req[i].prefill] = 0 end
  for i = 1, F.nreq do
    local wait, prefill = req[i].slices, req[i].prefill
    if wait > 0 then
      local one = F.cost(prefill, 1, F.params.q)
      local run = one * wait <= room - took and wait or math.max(0, math.floor((room - took) / one))
      slices[prefill] = slices[prefill] + run
      D:slices(prefill, slices[prefill])
      took, wait = took + run * one, wait - run
    end
    if wait == 0 then
      can = can + 1
      order[can] = i
    else
      D:pause(i)
    end
  end
  return took, can
end

return policy {
  name = "objective", api = 1, version = 1,
  needs = { "decode.k", "decode.batch" },
  params = { f_min = num { default = 50, min = 1, max = 10000 },      -- actions a second
             every = int { default = 1, min = 1, max = 1000 },        -- frames between requests
             period_us = num { default = 0, min = 0, max = 1e9 },     -- 0: frame follows frame
             q = num { default = 0.99, min = 0.5, max = 0.999 } },
  setup = function(S, T) ks = T.axis("k") end,
  plan = function(S, F, D)
    local live, q, n = F.nreq, F.params.q, 0
    if live == 0 then return end
    req = F.req
    local hard = F.cost("prefill", 0, q) + F.cost("action", 0, q)
    local took
    took, live = wait_for(F, D, hard)
    hard = hard + took
    if live == 0 then return end
    for i = 1, live do n = math.max(n, req[order[i]].max) end
    for i = #order, live + 1, -1 do order[i] = nil end
    local k, rows = sustained(F, hard, n), live
    if not k or not fast_enough(F, frame_us(F, hard, live, k)) then
      k, rows = limited(F, hard, live)
      table.sort(order, sooner)
      D:note("rows", rows)
    end
    for i = 1, live do
      if i <= rows then
        D:decode(order[i], k)
        D:priority(order[i], i - 1)
      else
        D:pause(order[i])
      end
    end
    D:note("k", k)
  end,
}
