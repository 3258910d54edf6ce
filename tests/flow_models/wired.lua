-- A flow of no paper over SmolVLM's text. Its layers norm behind the sum, in place of in front, add the rows that they
-- began with once more, half of them gated by the time, and see in turn themselves, the pictures and the rest of one
-- value, all of another one. The time stands among the rows, the state last. The prompt's rows see each other twice, by
-- heads of two sizes. tests/flow_models.py computes the same in numpy.
local c = given.config
if not c or c.model_type ~= "wired" then return false end
c.model_type = "smolvlm"
local model = include("smolvlm.lua")
local features, width, heads, horizon, dim = c.features, c.width, c.heads, c.horizon, c.dim

local function linear(g, x, name, out, options)
  local o = options or {}
  o.weight, o.bias, o.out = name .. ".weight", name .. ".bias", out
  return g:linear(x, o)
end

model.flow = { horizon = horizon, dim = dim, steps = c.steps }

-- The prompt's rows, to which is added what each gathers of all.
local function mixed(g, x, at, heads_, kv, dim_)
  local o = { heads = heads_, kv_heads = kv, head_dim = dim_, bf16 = true }
  for _, r in ipairs { "q", "k", "v" } do o[r], o[r .. "_bias"] = at .. r .. ".weight", at .. r .. ".bias" end
  return g:add(linear(g, g:attention(x, o), at .. "o", features, { bf16 = true }), x)
end

model.prefill = function(g)
  local x = linear(g, g:hidden { cols = c.text_config.hidden_size }, "project", features, { bf16 = true })
  x = g:norm(g:activation(x, { kind = "gelu" }), { eps = 1e-5, rms = true })
  x = mixed(g, mixed(g, x, "mixed1.", 2, 2, 10), "mixed2.", 4, 2, 5)
  return x, linear(g, x, "second", features)
end

local function layer(g, y, start, l, time, over)
  local at = "layers." .. l .. "."
  local o = { heads = heads, kv_heads = c.kv_heads, head_dim = width // heads, bf16 = true, over = over[1], sees = over[2] }
  if l % 2 == 1 then o.q_norm, o.k_norm, o.eps = at .. "q_norm.weight", at .. "k_norm.weight", 1e-5 end
  for _, r in ipairs { "q", "k", "v" } do o[r], o[r .. "_bias"] = at .. r .. ".weight", at .. r .. ".bias" end
  local x = g:add(linear(g, g:attention(y, o), at .. "o", width, { bf16 = true }), y)
  local row = linear(g, time, at .. "scale", 2 * width)
  y = g:norm(x, { eps = 1e-6, scale = g:columns(row, { cols = width }),
                  shift = g:columns(row, { first = width, cols = width }) })
  local gate
  if l % 2 == 0 then
    x = g:norm(y, { weight = at .. "norm.weight", eps = 1e-5, rms = true, offset = 1.0 })
    x = g:gated(x, { gate = at .. "gate.weight", up = at .. "up.weight", out = 2 * width,
                     kind = l == 2 and "silu" or "gelu", bf16 = true })
    gate = linear(g, time, at .. "share", width)
  else
    x = g:norm(y, { weight = at .. "norm.weight", bias = at .. "norm.bias", eps = 1e-5 })
    x = g:activation(linear(g, x, at .. "up", 2 * width, { bf16 = true }), { kind = "silu" })
  end
  return g:add(g:add(linear(g, x, at .. "down", width, { bf16 = true, gate = gate }), y), start)
end

model.action = function(g, seen, other, x, t)
  local tau = g:waves(t, { cols = 10, period = 50.0 })
  local time = g:add(g:activation(linear(g, tau, "time1", width), { kind = "silu" }), linear(g, tau, "time2", width))
  local state = g:activation(linear(g, g:state { entries = c.state }, "state", width), { kind = "relu" })
  local u = linear(g, g:beside(linear(g, x, "enter", width), tau), "mid", width)
  local same = {} -- is not another one in each step, and must not be overwritten
  for i = 1, horizon do same[i] = state end
  u = g:add(g:add(g:tensor { tensor = "places", rows = horizon, cols = width }, u), g:concat(same))
  local start = g:concat { g:tensor { tensor = "learned", rows = 2, cols = width }, time, u, state }
  local y = start
  local overs = { {}, { seen, "pictures" }, { seen, "rest" }, { other } }
  for l, over in ipairs(overs) do y = layer(g, y, start, l, time, over) end
  local seen_last = g:take(y, { first = 3, rows = horizon }) -- read behind what could be written over it
  local rows = g:add(g:take(g:activation(y, { kind = "relu" }), { first = 3, rows = horizon }), u)
  rows = g:activation(g:linear(rows, { weight = "own.W", bias = "own.b", out = 12, categories = 3, category = 1 }),
                      { kind = "gelu_erf" })
  return g:add(linear(g, rows, "leave", dim), linear(g, seen_last, "late", dim))
end

return model
