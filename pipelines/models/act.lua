-- ACT (Action Chunking with Transformers) as LeRobot trains it: each picture through a ResNet, its
-- pixels and the robot's state through an encoder, a chunk of actions from learned queries.
--
-- The VAE of training never runs here: its latent is 0, so its row is a bias. Sizes come from the
-- checkpoint's tensors, and a camera's size is the model's.
local config, shapes = given.config or {}, given.shapes
local read <const> = include("common/configuration.lua")
if given.config and config.type ~= "act" then return false end
if shapes and not shapes["encoder_latent_input_proj.bias"] then return false end
if not shapes and given.arch ~= "act" then return false end

if shapes and (shapes["normalize_targets.buffer_action.mean"] or shapes["unnormalize_outputs.buffer_action.mean"]) then
  error("this checkpoint is of LeRobot before 0.4: convert it with lerobot's migrate_policy_normalization.py", 0)
end

local sizes = {
  full  = { dim_model = 512, n_heads = 8, dim_feedforward = 3200, n_encoder_layers = 4, n_decoder_layers = 1,
            chunk_size = 100, channels = 64, height = 480, width = 640, state = 14, action = 14 },
  small = { dim_model = 256, n_heads = 8, dim_feedforward = 1024, n_encoder_layers = 4, n_decoder_layers = 1,
            chunk_size = 50, channels = 32, height = 240, width = 320, state = 14, action = 14 },
  tiny  = { dim_model = 32, n_heads = 2, dim_feedforward = 48, n_encoder_layers = 2, n_decoder_layers = 1,
            chunk_size = 10, channels = 8, height = 64, width = 96, state = 14, action = 14 },
}
local size = sizes[given.size] or sizes.full

local function option(name, otherwise)
  local value = config[name]
  if value == nil then value = size[name] end
  if value == nil then return otherwise end
  return value
end

-- One that is a whole number.
local function whole(name) return read.count({ [name] = option(name) }, name) end

-- The length of a feature's vector; nil where the checkpoint has none.
local function vector(features, name)
  local f = config[features] and config[features][name]
  return f and f.shape[1]
end

local function rows(tensor, otherwise)
  local shape = shapes and shapes[tensor]
  return shape and shape[1] or otherwise
end

local kinds = {
  resnet18 = { blocks = { 2, 2, 2, 2 } }, resnet34 = { blocks = { 3, 4, 6, 3 } },
  resnet50 = { blocks = { 3, 4, 6, 3 }, bottleneck = true },
  resnet101 = { blocks = { 3, 4, 23, 3 }, bottleneck = true },
  resnet152 = { blocks = { 3, 8, 36, 3 }, bottleneck = true },
}

-- A convolution and the norm behind it; `step` has its options.
local function conv(g, x, name, norm, out, step)
  step.weight = name .. ".weight"
  step.norm = { weight = norm .. ".weight", bias = norm .. ".bias", mean = norm .. ".running_mean",
                var = norm .. ".running_var" }
  step.out = rows(step.weight, out)
  return g:conv(x, step)
end

local function relu(g, x, name)
  return g:activation(x, { kind = "relu", name = name })
end

-- A block of torchvision's ResNet; stride and dilation are those of its 3x3 convolution.
local function block(g, x, name, tap, width, out, bottleneck, stride, dilation)
  local shortcut, y = x
  if not shapes and (stride ~= 1 or out ~= x.cols) or shapes and shapes[name .. "downsample.0.weight"] then
    shortcut = conv(g, x, name .. "downsample.0", name .. "downsample.1", out, { stride = stride })
  end
  if bottleneck then
    y = relu(g, conv(g, x, name .. "conv1", name .. "bn1", width, {}))
    y = relu(g, conv(g, y, name .. "conv2", name .. "bn2", width,
                     { side = 3, stride = stride, dilation = dilation, pad = dilation }))
    y = conv(g, y, name .. "conv3", name .. "bn3", out, {})
  else
    y = relu(g, conv(g, x, name .. "conv1", name .. "bn1", width, { side = 3, stride = stride, pad = 1 }))
    y = conv(g, y, name .. "conv2", name .. "bn2", out, { side = 3, pad = 1 })
  end
  return relu(g, g:add(y, shortcut), tap)
end

-- torchvision's ResNet without its pooling and classes.
local function resnet(g, x, before, tap)
  local kind = kinds[option("vision_backbone", "resnet18")]
  if not kind then
    read.refuse(config, "vision_backbone", "must be a ResNet of torchvision, is " .. read.shown(config.vision_backbone))
  end
  local channels = option("channels", 64)
  x = conv(g, x, before .. "conv1", before .. "bn1", channels,
           { side = 7, stride = 2, pad = 3, name = tap .. "conv1.sum" })
  x = g:max_pool(relu(g, x, tap .. "conv1"), { side = 3, stride = 2, pad = 1, name = tap .. "stem" })
  for layer, count in ipairs(kind.blocks) do
    local width = channels << (layer - 1)
    local out = kind.bottleneck and 4 * width or width
    local dilated = layer == 4 and kind.bottleneck and config.replace_final_stride_with_dilation
    for i = 1, count do
      local stride = i == 1 and layer > 1 and not dilated and 2 or 1
      local name = before .. "layer" .. layer .. "." .. (i - 1) .. "."
      x = block(g, x, name, i == count and tap .. "layer" .. layer or nil, width, out, kind.bottleneck, stride,
                dilated and i > 1 and 2 or 1)
    end
  end
  return x
end

local dim <const>, heads <const> = whole("dim_model"), whole("n_heads")
if dim % heads ~= 0 then read.refuse(config, "n_heads", heads .. " do not divide dim_model " .. dim) end
if dim % 4 ~= 0 then read.refuse(config, "dim_model", "must be divisible by 4, is " .. dim) end
local pre_norm <const> = option("pre_norm", false)
local activation <const> = ({ relu = "relu", gelu = "gelu_erf" })[option("feedforward_activation", "relu")]
if not activation then
  local said <const> = config.feedforward_activation
  read.refuse(config, "feedforward_activation", "must be relu or gelu, is " .. read.shown(said))
end

local function norm(g, x, name, tap)
  return g:norm(x, { weight = name .. ".weight", bias = name .. ".bias", eps = 1e-5, name = tap })
end

local function linear(g, x, name, out, tap)
  return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out, bf16 = true, name = tap })
end

-- torch's MultiheadAttention; `seen` has over and over_position.
local function attention(g, x, name, position, seen, tap)
  local o <const> = { qkv = name .. ".in_proj_weight", qkv_bias = name .. ".in_proj_bias", heads = heads,
                      head_dim = dim // heads, position = position, bf16 = true, name = tap .. "attn" }
  for key, value in pairs(seen or {}) do o[key] = value end
  return linear(g, g:attention(x, o), name .. ".out_proj", dim, tap .. (seen and "cross_out" or "attn_out"))
end

local function feed_forward(g, x, at, tap)
  local y = linear(g, x, at .. "linear1", whole("dim_feedforward"), tap .. "up")
  return linear(g, g:activation(y, { kind = activation }), at .. "linear2", dim, tap .. "mlp_out")
end

-- A half of a layer, with its norm in front of it or behind its sum.
local function half(g, x, name, tap, make)
  if pre_norm then return g:add(make(norm(g, x, name)), x, { name = tap }) end
  return norm(g, g:add(make(x), x), name, tap)
end

-- Layers of torch's Transformer; with `seen` those of its decoder.
local function layers(g, x, before, n, position, seen, taps)
  for i = 0, n - 1 do
    local at <const>, tap <const> = before .. "layers." .. i .. ".", taps .. "layer" .. i .. "."
    x = half(g, x, at .. "norm1", tap .. "self", function(y)
      return attention(g, y, at .. "self_attn", position, nil, tap)
    end)
    if seen then
      x = half(g, x, at .. "norm2", tap .. "cross", function(y)
        return attention(g, y, at .. "multihead_attn", position, seen, tap)
      end)
    end
    x = half(g, x, at .. (seen and "norm3" or "norm2"), tap .. "hidden", function(y)
      return feed_forward(g, y, at, tap)
    end)
  end
  return x
end

local pictures = given.pictures
if not pictures then
  if given.slots and #given.slots > 0 then
    error("sizes of its pictures are in config.json of its folder, which is not read: leave out --size", 0)
  end
  pictures = {}
  for i, name in ipairs { "top", "wrist" } do
    pictures[i] = { name = name, height = size.height, width = size.width, mean = { 0.485, 0.456, 0.406 },
                    std = { 0.229, 0.224, 0.225 } }
  end
end

local state = vector("input_features", "observation.state")
if not given.config then state = given.state or size.state end
local environment <const> = vector("input_features", "observation.environment_state")

-- The next entries of the robot's state as a row.
local function state_row(g, name, entries)
  return g:linear(g:state { entries = entries },
                  { weight = name .. ".weight", bias = name .. ".bias", out = dim, name = "state_in" })
end

-- The rows that the encoder reads: the latent, which is 0 where the VAE does not run, so that the
-- bias is left of its layer; the state; each picture's pixels.
local function encoder_rows(g)
  local all = { g:tensor { tensor = "encoder_latent_input_proj.bias", cols = dim } }
  if state then all[#all + 1] = state_row(g, "encoder_robot_state_input_proj", state) end
  if environment then all[#all + 1] = state_row(g, "encoder_env_state_input_proj", environment) end
  local places = { g:tensor { tensor = "encoder_1d_feature_pos_embed.weight", rows = #all, cols = dim } }
  for i, p in ipairs(pictures) do
    local tap = "net" .. (i - 1) .. "."
    local x = g:picture { slot = p.name, height = p.height, width = p.width, mean = p.mean, std = p.std,
                          name = tap .. "pixels" }
    x = g:conv(resnet(g, x, "backbone.", tap),
               { weight = "encoder_img_feat_input_proj.weight", bias = "encoder_img_feat_input_proj.bias",
                 out = dim, name = tap .. "tokens" })
    all[#all + 1] = x
    places[#places + 1] = g:sines(x, { cols = dim, period = 10000.0 })
  end
  return g:concat(all, { name = "encoder.in" }), g:concat(places, { name = "encoder.position" })
end

local slots = {}
for i, p in ipairs(pictures) do slots[i] = p.name end

return {
  name  = "act",
  slots = #slots > 0 and slots or nil,
  float32 = true, -- as LeRobot computes it: 50 M parameters, and nothing is gained by less
  prefill = function(g)
    local x, position = encoder_rows(g)
    x = layers(g, x, "encoder.", whole("n_encoder_layers"), position, nil, "encoder.")
    return pre_norm and norm(g, x, "encoder.norm", "encoder.out") or x, position
  end,
  action = function(g, seen, position)
    local horizon = given.config and whole("chunk_size") or given.horizon or size.chunk_size
    local x = g:start(g:zeros { rows = horizon, cols = dim, name = "start" })
    local own = g:tensor { tensor = "decoder_pos_embed.weight", rows = horizon, cols = dim }
    x = layers(g, x, "decoder.", whole("n_decoder_layers"), own, { over = seen, over_position = position }, "queries.")
    x = norm(g, x, "decoder.norm", "queries.out")
    return g:linear(x, { weight = "action_head.weight", bias = "action_head.bias", name = "actions",
                         out = vector("output_features", "action") or given.width or size.action })
  end,
  ignored = { "encoder_latent_input_proj.weight", "vae_encoder*" },
}
