-- The least recomputation whose answers agree with full recomputation often enough. One prompt in
-- `every` is computed a second time, whole, and its next token compared; the share of segments that is
-- computed anew goes up by a quarter when they differ, and down a little when they agree, so that it
-- settles where about `agree` of the audits do. An audited frame answers from the whole one, and
-- takes the time of both.
local node, layers, curve = nil, 0, {}

return policy {
  name = "keep_fidelity", api = 1, version = 1,
  params = { agree = num { default = 0.95, min = 0.5, max = 0.999 },
             every = int { default = 20, min = 1, max = 100000 },
             least = num { default = 0.1, min = 0, max = 1 } },
  state = { share = 0.5, prompts = 0, audits = 0, agreed = 0 },
  setup = function(S, T)
    for _, name in ipairs(T.nodes) do
      if T.node(name).kind == "memory_load" then node = name end
    end
    layers = T.layers
    for i = 1, layers do curve[i] = 0 end
  end,
  plan = function(S, F, D)
    if not node or layers == 0 or F.nseg == 0 then return end
    if F.audits > S.audits then             -- the audit of the frame before
      local more = F.agreed > S.agreed and -(1 - F.params.agree) / F.params.agree or 1
      S.share = math.max(F.params.least, math.min(1, S.share * (1 + 0.25 * more)))
    end
    S.audits, S.agreed = F.audits, F.agreed
    for i = 1, layers do curve[i] = math.max(S.share, (0.8 + 0.15 * S.share) ^ (i - 1)) end
    D:recompute(node, curve)
    S.prompts = S.prompts + 1
    if S.prompts % F.params.every == 1 or F.params.every == 1 then D:audit(node) end
    D:note("share", S.share)
  end,
  migrate = function(old) return old end,
}
