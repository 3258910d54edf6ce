-- KEEP's recomputation: every segment of the memory in the first layer, fewer from layer to layer. With
-- `ratio` the mean share over the layers is that; with `target_ms` it is what the time to the first
-- token allows, learnt from the frames before: less where they were late, more where there is room.
-- The curve of knob x is max(x, (0.8 + 0.15 x)^layer): from a steep one for 0 to everything for 1.
local STEPS <const> = 32
local node, ask, layers, curve, mean = nil, nil, 0, {}, {}

local function share(x, i) return math.max(x, (0.8 + 0.15 * x) ^ i) end

-- The knob whose curve has that mean, to 1/32.
local function knob(want)
  for s = 0, STEPS do
    if mean[s] >= want then return s end
  end
  return STEPS
end

return policy {
  name = "keep", api = 1, version = 1,
  params = { ratio = num { default = 0.3, min = 0, max = 1 },
             target_ms = num { default = 0, min = 0, max = 1e6 } }, -- 0: by ratio
  state = { share = 0.3, rows = 0 },
  setup = function(S, T)
    for _, name in ipairs(T.nodes) do
      local n = T.node(name)
      if n.kind == "memory_load" then node = name end
      if n.kind == "prefill" and not ask then ask = name end
    end
    layers = T.layers
    for i = 1, layers do curve[i] = 0 end
    for s = 0, STEPS do
      local sum = 0
      for i = 0, layers - 1 do sum = sum + share(s / STEPS, i) end
      mean[s] = sum / layers
    end
  end,
  plan = function(S, F, D)
    if not node or layers == 0 or F.nseg == 0 then return end
    local s = knob(F.params.target_ms > 0 and S.share or F.params.ratio)
    for i = 1, layers do curve[i] = share(s / STEPS, i - 1) end
    D:recompute(node, curve)
    D:note("share", mean[s])
    S.rows = mean[s]
  end,
  observe = function(S, F, R)
    local us = ask and R.node_us[ask] or 0
    if F.params.target_ms <= 0 or us <= 0 or S.rows <= 0 then return end
    -- The query's rows, the loads and the choosing are in it whatever is recomputed: a tenth.
    local allowed = F.params.target_ms * 1000 / us * (S.rows + 0.1) - 0.1
    S.share = math.max(0, math.min(1, S.share + 0.5 * (allowed - S.share)))
  end,
}
