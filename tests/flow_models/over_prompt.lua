-- A flow of no paper over the keys of a text behind SmolVLM's pictures: how it is wired is drawn by
-- tests/flow_prompts.py, which says it in config.json and computes the same in numpy.
local c = given.config
if not c or c.model_type ~= "over_prompt" then return false end
c.model_type = "smolvlm"
local model = include("smolvlm.lua")
local f <const> = c.flow
local width <const>, horizon <const>, dim <const> = f.width, f.horizon, f.dim

model.slots = f.slots
model.text.picture, model.text.mask = nil, f.mask
model.flow = { horizon = horizon, dim = dim, steps = 4, falls = f.falls }

local function linear(g, x, name, out)
  return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out })
end

-- A norm, and the row of the time that gates what is made of it, where norms are dense layers of that.
local function norm(g, x, name, time)
  local weight <const>, bias <const> = "expert." .. name, "expert." .. name .. ".bias"
  if f.norm ~= "adaptive" then
    return g:norm(x, { weight = weight, bias = f.norm == "layer" and bias or nil, rms = f.norm == "rms", eps = 1e-5,
                       offset = f.offset }), function() end
  end
  local row <const> = g:linear(time, { weight = weight, bias = bias, out = 3 * width })
  local function part(i) return g:columns(row, { first = i * width, cols = width }) end
  return g:norm(x, { rms = true, eps = 1e-5, scale = part(0), shift = part(1) }), function() return part(2) end
end

-- What a half of a layer gives.
local function half(g, x, role, at, gate)
  local bias <const> = role == "o" and f.biased and "expert.o." .. at .. ".bias" or nil
  return g:linear(x, { weight = "expert." .. role .. "." .. at, bias = bias, out = width, bf16 = true, gate = gate(),
                       factor = f.scaled and "expert." .. role .. "." .. at .. ".factor" or nil })
end

local function attention(g, x, prompt, wired, gate)
  local o = { heads = f.heads, kv_heads = f.kv, head_dim = f.head_dim, over = prompt, layer = wired.of, lead = f.lead,
              projected = wired.crossed, bf16 = true }
  for _, r in ipairs { "q", "k", "v" } do
    o[r] = "expert." .. r .. "." .. wired.at
    if f.biased then o[r .. "_bias"] = o[r] .. ".bias" end
  end
  if f.head_norms then
    o.q_norm, o.k_norm = "expert.q_norm." .. wired.at, "expert.k_norm." .. wired.at
    o.eps, o.offset = 1e-5, f.offset
  end
  return half(g, g:attention(x, o), "o", wired.at, gate)
end

local function feed_forward(g, x, at, gate)
  local y
  if f.gated then
    y = g:gated(x, { gate = "expert.gate." .. at, up = "expert.up." .. at, out = 2 * width, kind = f.activation,
                     bf16 = true })
  else
    y = g:activation(g:linear(x, { weight = "expert.up." .. at, bias = "expert.up." .. at .. ".bias", out = 2 * width,
                                   bf16 = true }), { kind = f.activation })
  end
  return half(g, y, "down", at, gate)
end

local function no_gate() end

-- The layers, by how they are wired. A layer has one attention or two.
local layers <const> = {
  before = function(g, x, at, time, prompt, wired)
    for i, w in ipairs(wired) do
      local y <const>, gate <const> = norm(g, x, "norm1." .. w.at, time)
      x = g:add(attention(g, y, prompt, wired[i], gate), x)
    end
    local y <const>, gate <const> = norm(g, x, "norm2." .. at, time)
    return g:add(feed_forward(g, y, at, gate), x)
  end,
  beside = function(g, x, at, time, prompt, wired)
    local y <const>, gate <const> = norm(g, x, "norm2." .. at, time)
    local sum = x
    for _, w in ipairs(wired) do
      local z <const>, its <const> = norm(g, x, "norm1." .. w.at, time)
      sum = g:add(attention(g, z, prompt, w, its), sum)
    end
    return g:add(sum, feed_forward(g, y, at, gate))
  end,
  behind = function(g, x, at, time, prompt, wired)
    for _, w in ipairs(wired) do
      x = norm(g, g:add(attention(g, x, prompt, w, no_gate), x), "norm1." .. w.at, time)
    end
    return (norm(g, g:add(feed_forward(g, x, at, no_gate), x), "norm2." .. at, time))
  end,
}

model.prefill = function(g)
  if not f.behind then return g:prompt() end
  local x = g:activation(linear(g, g:state { entries = f.state }, "state1", 12), { kind = "relu" })
  return g:prompt { behind = linear(g, x, "state2", c.text_config.hidden_size) }
end

-- The time between two periods, or up to one; a row for each norm, or for whatever else reads it.
local function time_of(g, t)
  local o = { cols = width, cosines = f.cosines }
  if f.periods then o.shortest, o.longest = 0.05, 3.0 else o.period = 40.0 end
  return g:activation(linear(g, g:waves(t, o), "time", width), { kind = "gelu" })
end

model.action = function(g, prompt, x, t)
  local time <const> = time_of(g, t)
  local rows = {}
  if f.learned > 0 then rows[1] = g:tensor { tensor = "learned", rows = f.learned, cols = width } end
  if f.in_front then rows[#rows + 1] = linear(g, g:state { entries = f.state }, "state", width) end
  local y = linear(g, x, "enter", width)
  if f.reads == "beside" then
    y = linear(g, g:beside(y, time), "mid", width)
  elseif f.reads == "row" then
    rows[#rows + 1] = time
  elseif f.reads == "norm" then
    y = g:norm(y, { eps = 1e-5, scale = time })
  end
  if f.places then y = g:add(y, g:tensor { tensor = "places", rows = horizon, cols = width }) end
  rows[#rows + 1] = y
  y = #rows > 1 and g:concat(rows) or y
  for i, wired in ipairs(f.wired) do y = layers[wired.kind](g, y, i - 1, time, prompt, wired.attentions) end
  if f.final then y = norm(g, y, "final", time) end
  if #rows > 1 then y = g:take(y, { first = y.rows - horizon, rows = horizon }) end
  return linear(g, y, "leave", dim)
end

return model
