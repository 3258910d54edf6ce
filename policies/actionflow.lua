-- ActionFlow: one forward a frame takes the new observation in and advances all that are in flight.
-- depth = 0 asks for the shallowest captured ring whose frame fits the time there is: fewer
-- observations in flight cost more a frame, but each becomes an action sooner.
local depths, ring
return policy {
  name = "actionflow", api = 1, version = 1,
  needs = { "depth" },
  params = { depth = int { default = 0, min = 0, max = 64 } },
  setup = function(S, T)
    depths, ring = T.axis("depth"), T.ring
  end,
  plan = function(S, F, D)
    local d, i = F.params.depth, 1
    if d == 0 then
      while i < #depths and F.cost("packed", depths[i], 0.99) > F.budget_us do i = i + 1 end
      d = depths[i]
    end
    D:depth(ring, d)
  end,
}
