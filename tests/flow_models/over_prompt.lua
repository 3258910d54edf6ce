-- A flow of no paper over the keys of a text behind SmolVLM's pictures: how it is wired is drawn by
-- tests/flow_prompts.py, which says it in config.json and computes the same in numpy.
local c = given.config
if not c or c.model_type ~= "over_prompt" then return false end
c.model_type = "smolvlm"
local model = include("smolvlm.lua")
local f <const> = c.flow
local width <const>, horizon <const>, dim <const> = f.width, f.horizon, f.dim
local theta <const> = c.text_config.rope_theta or c.text_config.rope_parameters.rope_theta

model.slots = f.slots
model.text.picture, model.text.mask = nil, f.mask
model.flow = { horizon = horizon, dim = dim, steps = 4, falls = f.falls }

local function linear(g, x, name, out)
  return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out })
end

-- The roles of a layer with tensors of their own; norms of the time are dense layers.
local function tensors()
  local t = {}
  for _, r in ipairs(f.roles) do t[r] = "expert." .. r .. ".{}" end
  if t.final then t.final = "expert.final" end
  if t.final_bias then t.final_bias = "expert.final_bias" end
  return t
end

local expert <const> = {
  layers = f.layers, width = width, heads = f.heads, kv_heads = f.kv, head_dim = f.head_dim, mlp = 2 * width,
  norm = f.norm, norm_offset = f.offset, eps = 1e-5, theta = theta, activation = f.activation,
  crossed = f.crossed, tensors = tensors(),
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
  local rows, more = {}, { stack = expert, over = prompt, lead = f.lead, every = f.every }
  if f.learned > 0 then rows[1] = g:tensor { tensor = "learned", rows = f.learned, cols = width } end
  if f.in_front then rows[#rows + 1] = linear(g, g:state { entries = f.state }, "state", width) end
  local y = linear(g, x, "enter", width)
  if f.reads == "beside" then
    y = linear(g, g:beside(y, time), "mid", width)
  elseif f.reads == "row" then
    rows[#rows + 1] = time
  elseif f.reads == "norm" then
    y = g:norm(y, { eps = 1e-5, scale = time })
  else
    more.time = time
  end
  if f.places then y = g:add(y, g:tensor { tensor = "places", rows = horizon, cols = width }) end
  rows[#rows + 1] = y
  local front <const> = #rows > 1 and g:concat(rows) or y
  y = g:stack(front, more)
  if #rows > 1 then y = g:take(y, { first = y.rows - horizon, rows = horizon }) end
  return linear(g, y, "leave", dim)
end

return model
