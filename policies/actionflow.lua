-- ActionFlow: one forward a frame takes the new observation in and advances all that are in flight;
-- of all rings. depth = 0 asks for the shallowest captured ring whose frame fits the time there is:
-- fewer observations in flight cost more a frame, but each becomes an action sooner. What is left of the
-- frame goes to prefills that requests wait for, slice by slice, then to k steps of each request.
local depths, rings
local slices = {}                -- by prefill, of all requests that wait for it
return policy {
  name = "actionflow", api = 1, version = 1,
  needs = { "depth" },
  params = { depth = int { default = 0, min = 0, max = 64 },
             k = int { default = 4, min = 1, max = 32 } },
  setup = function(S, T)
    depths, rings = T.axis("depth"), T.rings
  end,
  plan = function(S, F, D)
    local d, i = F.params.depth, 1
    if d == 0 then
      while i < #depths and F.cost("packed", depths[i], 0.99) > F.budget_us do i = i + 1 end
      d = depths[i]
    end
    for r = 1, #rings do D:depth(rings[r], d) end
    local room = F.slack_us(0.99)
    for r = 1, F.nreq do slices[F.req[r].prefill] = 0 end
    for r = 1, F.nreq do
      local one = F.req[r]
      local cost = one.slices > 0 and F.cost(one.prefill, 1, 0.99) or F.cost(one.node, 1, 0.99)
      local fit = math.floor(room / cost)
      if one.slices > 0 then
        fit = math.max(0, math.min(fit, one.slices))
        slices[one.prefill] = slices[one.prefill] + fit
        D:slices(one.prefill, slices[one.prefill])
      else
        fit = math.max(0, math.min(fit, F.params.k))
        if fit > 0 then D:decode(r, fit) else D:pause(r) end
      end
      room = room - fit * cost
    end
  end,
}
