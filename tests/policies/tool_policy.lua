-- What tool.lua tries: shows what it sees as notes, and decides a little of everything.
return policy {
  name = "tool_policy", api = 1, version = 1,
  params = { mode = int { default = 0, min = 0, max = 2 } },
  state = { cause = "none", overrun = 0 },
  admit = function(S, F, r)
    if r.max > 30 then return false, "long" end
    return true
  end,
  evict = function(S, F, n)
    if n == 2 then return 2 end
  end,
  observe = function(S, F, R)
    if R.cause == "gpu" then error("did not expect gpu") end
    S.cause, S.overrun = R.cause, R.overrun_us
  end,
  plan = function(S, F, D)
    local r = F.req[1]
    if F.params.mode == 2 then return F.reqs end
    if F.params.mode == 1 then
      D:note("two", F.cost("decode", 2))
      D:note("three", F.cost("decode", 3))
      D:note("six", F.cost("decode", 6))
      D:note("talk", F.cost("talk"))
      D:note("p50", F.slack_us(0.5))
      D:note("p99", F.slack_us(0.99))
      D:note("late", F.late.state)
      D:note("used", F.kv("lang").used + 100 * F.last.tokens + 1000 * F.last.node_us.act)
      D:decode(1, 8)
      D:unshare(1)
      D:priority(1, 4)
      D:decode(2, 3)
      D:shed(3, "old")
      D:decode(4, 8)
      D:batch(4, 1)
      D:priority(4, 2)
      D:partition("talk", "rt")
      return
    end
    D:note("index", F.index)
    if S.cause ~= "none" then
      D:note("cause", S.cause)
      D:note("overrun", S.overrun)
      return
    end
    D:note("now", F.now_us)
    D:note("left", r.left)
    D:note("deadline", r.deadline_us)
    D:note("horizon", F.horizon)
    D:note("slots", F.slots)
    D:note("fresh", r.fresh and 1 or 0)
    D:note("budget", F.budget_us)
  end,
}
