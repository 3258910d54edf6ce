-- Pictures of Qwen3-VL, from vision_config: a tower whose patches are turned by line and column, and rows of the text
-- of squares of them. Rows that leave some layers of the tower go to the first layers of the text, too (DeepStack).
local read <const> = include("common/configuration.lua")
local count <const> = read.count
local pictures_of <const> = include("common/picture_layers.lua")

local names <const> = { qkv = "attn.qkv", o = "attn.proj", up = "mlp.linear_fc1", down = "mlp.linear_fc2",
                        norm1 = "norm1", norm2 = "norm2" }

-- The side of a square of `n` positions.
local function side_of(c)
  local n <const> = count(c, "num_position_embeddings", 2304)
  local side = 1
  while side * side < n do side = side + 1 end
  if side * side ~= n then read.refuse(c, "num_position_embeddings", "must be a square, is " .. n) end
  return side
end

-- The layers that are kept, from 0 on, in rising order.
local function deep_layers(c)
  local list <const> = c.deepstack_visual_indexes == nil and { 8, 16, 24 } or c.deepstack_visual_indexes
  if type(list) ~= "table" then read.refuse(c, "deepstack_visual_indexes", "must be a list") end
  for i, layer in ipairs(list) do
    if math.type(layer) ~= "integer" or layer < 0 or i > 1 and layer <= list[i - 1] then
      read.refuse(c, "deepstack_visual_indexes", "must be whole numbers that rise")
    end
  end
  return list
end

-- Squares of x as rows of the text, by a norm, in front of the squares or behind, and two products.
local function merge(g, x, at, s)
  local function linear(y, name, out)
    return g:linear(y, { weight = at .. name .. ".weight", bias = at .. name .. ".bias", out = out, bf16 = not s.f32,
                         name = s.tap .. name })
  end
  x = g:squares(x, { side = s.side, bf16 = not s.f32 and not s.norm, name = s.tap .. "shuffled" })
  local wide <const> = x.cols
  if s.norm then
    x = g:norm(x, { weight = at .. "norm.weight", bias = at .. "norm.bias", eps = 1e-6, bf16 = not s.f32,
                    name = s.tap .. "norm" })
  end
  x = g:activation(linear(x, "linear_fc1", wide), { kind = "gelu_erf" })
  return linear(x, "linear_fc2", s.width)
end

-- The values of a list from the i-th on, as so many results.
local function each(list, i)
  if i < #list then return list[i], each(list, i + 1) end
  return list[i]
end

-- A description's `vision`: tensors are below V, c is vision_config, pictures are image_size a side or have `sizes`,
-- `width` is the text's. f32: the tower stays as it is stored.
return function(V, c, o)
  local width <const>, heads <const> = count(c, "hidden_size", 1152), count(c, "num_heads", 16)
  if width % heads ~= 0 then read.refuse(c, "num_heads", heads .. " do not divide " .. width) end
  local act <const> = c.hidden_act or "gelu_pytorch_tanh"
  if act ~= "gelu_pytorch_tanh" then
    read.refuse(c, "hidden_act", "must be gelu_pytorch_tanh, is " .. read.shown(act))
  end
  if count(c, "in_channels", 3) ~= 3 then read.refuse(c, "in_channels", "must be 3") end
  local out <const>, deep <const> = count(c, "out_hidden_size", 3584), deep_layers(c)
  if out ~= o.width then read.refuse(c, "out_hidden_size", out .. " is not the text's " .. o.width) end
  local side <const> = count(c, "spatial_merge_size", 2)
  local t = pictures_of {
    prefix = V .. "blocks.", names = names, layers = count(c, "depth", 27), width = width, heads = heads,
    mlp = count(c, "intermediate_size", 4304), eps = 1e-6, final = V .. "merger.norm", f32 = o.f32,
    image_size = o.image_size, patch = count(c, "patch_size", 16), frames = count(c, "temporal_patch_size", 2),
    embed = V .. "patch_embed.proj", position = V .. "pos_embed.weight", corners = true,
    side = side_of(c), rotation = { theta = 10000.0 }, keeps = deep,
  }
  t.mean, t.std = { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 }
  local function project(g, x, ...)
    local s <const> = { side = side, width = o.width, f32 = o.f32, tap = "vision." }
    local rows <const> = { merge(g, x, V .. "merger.", s) }
    for i, kept in ipairs { ... } do
      s.norm, s.tap = true, "vision.deep" .. i - 1 .. "."
      rows[i + 1] = merge(g, kept, V .. "deepstack_merger_list." .. i - 1 .. ".", s)
    end
    return each(rows, 1)
  end
  return { towers = { t }, project = project, sizes = o.sizes }
end
