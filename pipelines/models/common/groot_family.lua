-- What GR00T N1.5, N1.6 and N1.7 share: pictures and the first layers of a Qwen3, whose last rows a diffusion
-- transformer reads. Layers of the action head have a matrix for each kind of robot, its embodiment.
-- `given` = { config, robots, cameras, shapes, size, arch, embodiment, width, horizon }: config.json, and by tag what
-- experiment_cfg/metadata.json says of the robots that a checkpoint was trained for.
local read <const> = include("common/configuration.lua")
local count <const> = read.count

local layers_of <const> = include("common/decoder_layers.lua")
local pictures_of <const> = include("common/picture_layers.lua")

local function table_of(x) return type(x) == "table" and x or {} end

local function tower(c, V, side, numbers)
  local act <const> = c.hidden_act or "gelu_pytorch_tanh"
  if act ~= "gelu_pytorch_tanh" then
    read.refuse(c, "hidden_act", "must be gelu_pytorch_tanh, is " .. read.shown(act))
  end
  local width <const>, heads <const> = count(c, "hidden_size", 1152), count(c, "num_attention_heads", 16)
  if width % heads ~= 0 then read.refuse(c, "num_attention_heads", heads .. " do not divide " .. width) end
  read.only(c, "num_channels", 3)
  local s = {
    prefix = V .. "encoder.layers.", layers = count(c, "num_hidden_layers", 27), width = width, heads = heads,
    mlp = count(c, "intermediate_size", 4304), eps = read.above(c, "layer_norm_eps", 0.0, 1e-6),
    final = V .. "post_layernorm",
    -- A tower that is stored in float32 stays so: its rounding is most of what a bf16 plan loses.
    f32 = table_of(given.dtypes)[V .. "post_layernorm.weight"] == "F32",
    image_size = side, patch = count(c, "patch_size", 14), embed = V .. "embeddings.patch_embedding",
    position = V .. "embeddings.position_embedding.weight",
  }
  for key, value in pairs(numbers or {}) do s[key] = value end
  local t = pictures_of(s)
  t.mean, t.std = { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 }
  return t
end

local function text_of(c, T, layers, sections)
  if (c.hidden_act or "silu") ~= "silu" then
    read.refuse(c, "hidden_act", "must be silu, is " .. read.shown(c.hidden_act))
  end
  if read.flag(c, "use_sliding_window", false) then read.refuse(c, "use_sliding_window", "is not supported") end
  read.only(c, "attention_bias", false)
  if c.num_hidden_layers ~= nil and count(c, "num_hidden_layers") < layers then
    read.refuse(c, "num_hidden_layers", c.num_hidden_layers .. " are fewer than the " .. layers .. " of select_layer")
  end
  local heads <const>, scaling <const> = count(c, "num_attention_heads", 16), read.part(c, "rope_scaling")
  if (scaling.rope_type or scaling.type or "default") ~= "default" then
    local key <const> = scaling.rope_type and "rope_type" or "type"
    read.refuse(scaling, key, tostring(scaling[key]) .. " is not supported")
  end
  local theta <const>, width <const> = read.above(c, "rope_theta", 1.0, 1000000.0), count(c, "hidden_size", 2048)
  return layers_of {
    prefix = T, layers = layers, width = width, heads = heads, kv_heads = read.kv_heads(c, heads, 8),
    head_dim = read.head_dim(c, width, heads, 128), mlp = count(c, "intermediate_size", 6144),
    eps = read.above(c, "rms_norm_eps", 0.0, 1e-6), activation = "silu",
    head_norms = true, scores = function() return { rotation = { theta = theta, sections = sections } } end,
  }
end

-- Sizes of diffusers' BasicTransformerBlock; `affine`: whether its norms have weights.
local function block_sizes(c, affine)
  if c.positional_embeddings ~= nil then read.refuse(c, "positional_embeddings", "is not supported") end
  if (c.activation_fn or "gelu-approximate") ~= "gelu-approximate" then
    read.refuse(c, "activation_fn", "must be gelu-approximate, is " .. read.shown(c.activation_fn))
  end
  read.only(c, "attention_bias", true)
  read.only(c, "norm_elementwise_affine", affine)
  read.only(c, "norm_eps", 1e-5)
  local heads <const>, dim <const> = count(c, "num_attention_heads"), count(c, "attention_head_dim")
  return { layers = count(c, "num_layers"), width = heads * dim, heads = heads, kv_heads = heads, head_dim = dim,
           mlp = 4 * heads * dim }
end

-- Fields of the action head that may say one thing alone, or what the text's rows say.
local function check_head(head, features)
  if type(head.diffusion_model_cfg) ~= "table" then
    read.refuse(head, "diffusion_model_cfg", "must be an object, is " .. read.shown(head.diffusion_model_cfg))
  end
  local blocks <const> = read.part(head, "diffusion_model_cfg")
  read.word(blocks, "norm_type", { "ada_norm" }, "ada_norm")
  if not read.flag(head, "add_pos_embed", true) then read.refuse(head, "add_pos_embed", "false is not supported") end
  for _, field in ipairs { { head, "backbone_embedding_dim" }, { blocks, "cross_attention_dim" } } do
    local of <const>, name <const> = field[1], field[2]
    if given.config and of[name] ~= nil and count(of, name) ~= features then
      read.refuse(of, name, of[name] .. " is not " .. features .. ", the columns of the text's rows")
    end
  end
end

-- A product with options beside its tensors.
local function linear(g, x, name, out, options)
  local o = options or {}
  o.weight, o.bias, o.out = name .. ".weight", name .. ".bias", out
  return g:linear(x, o)
end

-- Layers of BasicTransformerBlock whose rows see each other, with norms of their own.
local function block_layers(g, x, s, layers)
  local function norm(at, name, tap)
    return g:norm(x, { weight = at .. name .. ".weight", bias = at .. name .. ".bias", eps = 1e-5, name = tap .. name })
  end
  for i = 0, s.layers - 1 do
    local at <const>, tap <const> = layers .. i .. ".", "features.layer" .. i .. "."
    local o = { heads = s.heads, head_dim = s.head_dim, bf16 = true, name = tap .. "attn" }
    for _, r in ipairs { "q", "k", "v" } do
      o[r], o[r .. "_bias"] = at .. "attn1.to_" .. r .. ".weight", at .. "attn1.to_" .. r .. ".bias"
    end
    local y = g:attention(norm(at, "norm1", tap), o)
    x = g:add(linear(g, y, at .. "attn1.to_out.0", s.width, { bf16 = true, name = tap .. "attn_out" }), x)
    y = linear(g, norm(at, "norm3", tap), at .. "ff.net.0.proj", s.mlp, { bf16 = true, name = tap .. "up" })
    y = linear(g, g:activation(y, { kind = "gelu" }), at .. "ff.net.2", s.width,
               { bf16 = true, name = tap .. "mlp_out" })
    x = g:add(y, x, { name = tap .. "hidden" })
  end
  return x
end

-- The number of the robot's kind. Tags that a folder does not number have those of the published code.
local function embodiment(m, categories)
  local tag = given.embodiment or table_of(given.config).embodiment_tag
  if not tag and table_of(given.config).type == "groot" then tag = "new_embodiment" end -- LeRobot's default
  local known, tags = {}, ""
  for name in pairs(table_of(given.robots)) do
    known[#known + 1] = name
    tags = tags .. (tags == "" and "" or ", ") .. name
  end
  if not tag and not given.shapes then return 0 end
  if not tag and #known == 1 then tag = known[1] end
  if math.type(tag) == "integer" then return tag end
  if not tag then
    error("which robot? say --embodiment TAG, or embodiment = TAG in the model of a file"
          .. (#known > 0 and "; the checkpoint knows " .. tags or ""), 0)
  end
  local id = table_of(given.embodiments)[tag] or m.embodiments[tag]
  if not id then
    local list = ""
    for name in pairs(m.embodiments) do list = list .. (list == "" and "" or ", ") .. name end
    error("embodiment '" .. tostring(tag) .. "' has no number; known are " .. list, 0)
  end
  if math.type(id) ~= "integer" or id < 0 or id >= categories then
    error("embodiment_id.json: " .. tostring(tag) .. ": must be 0 to " .. categories - 1 .. ", is " .. tostring(id), 0)
  end
  return id
end

-- Pictures of N1.5 and N1.6: SigLIP, and rows of the text of a layer, or of a norm and two; matrices of two are
-- rounded in a bf16 plan. c as of the family.
local function eagle(m, c, width)
  local B <const> = m.backbone
  local function project(g, x)
    if c.shuffle > 1 then
      x = g:squares(x, { side = c.shuffle, planes = c.planes, bf16 = true, name = "vision.shuffled" })
    end
    if c.connector == 1 then return linear(g, x, B .. "mlp1.0", width) end
    x = g:norm(x, { weight = B .. "mlp1.0.weight", bias = B .. "mlp1.0.bias", eps = 1e-5, name = "projector_norm" })
    x = linear(g, x, B .. "mlp1.1", width, { bf16 = true, name = "projector.1" })
    return linear(g, g:activation(x, { kind = "gelu_erf" }), B .. "mlp1.3", width, { bf16 = true })
  end
  local V <const> = B .. "vision_model.vision_model."
  return { towers = { tower(c.vision, V, c.image_size, c.tower) }, project = project, sizes = c.sizes }
end

-- m: what differs. backbone, embodiments, text = where the text's names begin, head = of its head, ignored; c: {
-- text, select, image_token, project, head, future, self, split, slots, horizon }, and pictures = the description's
-- vision, sections = of the text's rotation, raw = true: rows in front of its last norm are read; or of SigLIP
-- vision, image_size, tower, sizes, shuffle, planes, connector.
return function(m, c)
  local B <const> = m.backbone
  local T <const>, A <const> = m.text or B .. "language_model.model.", "action_head."
  local head <const> = c.head
  local text <const> = text_of(c.text, T, c.select, c.sections)
  if c.raw then text.leave = function(_, x) return x end end
  local features <const> = c.project or text.width
  check_head(head, features)
  local blocks <const> = block_sizes(head.diffusion_model_cfg, false)
  local itself <const> = c.self and block_sizes(c.self, true)
  if itself and itself.width ~= features then
    read.refuse(c.self, "num_attention_heads", itself.heads .. " heads of " .. itself.head_dim .. " are not the "
                .. features .. " columns of the text's rows")
  end
  local width <const> = count(head, "input_embedding_dim", 1536)
  if blocks.width ~= width then
    read.refuse(head.diffusion_model_cfg, "num_attention_heads", blocks.heads .. " heads of " .. blocks.head_dim
                .. " are not input_embedding_dim " .. width)
  end
  local horizon <const> = given.shapes and c.horizon or given.horizon or c.horizon
  local dim <const> = not given.shapes and given.width or c.dim or count(head, "max_action_dim", 32)
  local categories <const> = count(head, "max_num_embodiments", 32)
  local category <const>, normed <const> = embodiment(m, categories), read.flag(head, "use_vlln", true)
  local longest <const> = count(head, "max_seq_len", 1024)
  if horizon > longest then
    read.refuse(head, "max_seq_len", longest .. " positions are fewer than a chunk's " .. horizon .. " rows")
  end

  -- A layer with a matrix for each kind of robot.
  local function own(g, x, layer, out, name)
    return g:linear(x, { weight = A .. layer .. ".W", bias = A .. layer .. ".b", out = out, categories = categories,
                         category = category, name = name })
  end
  local function two(g, x, coder, out, tap)
    x = own(g, x, coder .. ".layer1", count(head, "hidden_size", 1024), coder .. ".layer1")
    return own(g, g:activation(x, { kind = "relu" }), coder .. ".layer2", out, tap)
  end

  -- The text's rows behind its last norm, and what the action head makes of them once an observation.
  local function prefill(g)
    local x = g:hidden { cols = text.width, name = not c.project and "features.in" or nil }
    if c.project then x = linear(g, x, "backbone.eagle_linear", features, { bf16 = true, name = "features.in" }) end
    if normed then
      x = g:norm(x, { weight = A .. "vlln.weight", bias = A .. "vlln.bias", eps = 1e-5, name = "features.norm" })
    end
    if not itself or not (normed or m.unnormed) then return x end
    return block_layers(g, x, itself, A .. "vl_self_attention.transformer_blocks.")
  end

  -- The time as a row that every norm reads: t is a whole number of 1000.
  local function condition(g, t)
    local layer <const> = A .. "model.timestep_encoder.timestep_embedder.linear_"
    local x = g:waves(t, { cols = 256, period = 10000.0, closed = true, cosines = true })
    x = g:activation(linear(g, x, layer .. "1", width), { kind = "silu" })
    return g:activation(linear(g, x, layer .. "2", width, { name = "temb" }), { kind = "silu" })
  end

  -- A norm that is scaled and shifted by what the condition becomes; `at`: the first column of each.
  local function adaptive(g, x, time, layer, at, eps, name, mod)
    local row = linear(g, time, layer, 2 * width, { name = mod })
    return g:norm(x, { eps = eps, name = name, scale = g:columns(row, { first = at.scale, cols = width }),
                       shift = g:columns(row, { first = at.shift, cols = width }) })
  end

  -- The noisy actions with the time beside them.
  local function encode(g, x, t)
    local tau = g:waves(t, { cols = width, period = 10000.0, f32 = true, name = "action_sincos" })
    x = own(g, x, "action_encoder.W1", width, "action_in")
    x = own(g, g:beside(x, tau), "action_encoder.W2", width, "time_in")
    x = own(g, g:activation(x, { kind = "silu" }), "action_encoder.W3", width, "time_out")
    local places = g:tensor { tensor = A .. "position_embedding.weight", rows = longest, cols = width }
    return g:add(x, g:take(places, { rows = horizon }), { name = "actions" })
  end

  -- Which rows layer l sees; nil: its own. A folder that does not say so has no layer that sees its own.
  local interleaved <const> = read.flag(head.diffusion_model_cfg, "interleave_self_attention", not given.config)
  if c.split and not interleaved then
    read.refuse(head.diffusion_model_cfg, "interleave_self_attention", "must be true where use_alternate_vl_dit is")
  end
  local function sees(l)
    if interleaved and l % 2 == 1 then return nil end
    return c.split and (l % (2 * c.split) ~= 0 and "pictures" or "rest") or "all"
  end

  -- A layer of the diffusion transformer.
  local function block(g, y, l, seen, time)
    local at <const>, tap <const> = A .. "model.transformer_blocks." .. l .. ".", "layer" .. l .. "."
    local x = adaptive(g, y, time, at .. "norm1.linear", { scale = 0, shift = width }, 1e-5, tap .. "norm1",
                       tap .. "mod")
    local o = { heads = blocks.heads, head_dim = blocks.head_dim, bf16 = true, sees = sees(l), name = tap .. "attn" }
    o.over = o.sees and seen
    for _, r in ipairs { "q", "k", "v" } do
      o[r], o[r .. "_bias"] = at .. "attn1.to_" .. r .. ".weight", at .. "attn1.to_" .. r .. ".bias"
    end
    x = linear(g, g:attention(x, o), at .. "attn1.to_out.0", width, { bf16 = true, name = tap .. "o" })
    y = g:add(x, y)
    x = linear(g, g:norm(y, { eps = 1e-5, name = tap .. "norm2" }), at .. "ff.net.0.proj", blocks.mlp,
               { bf16 = true, name = tap .. "up" })
    x = linear(g, g:activation(x, { kind = "gelu" }), at .. "ff.net.2", width, { bf16 = true, name = tap .. "down" })
    return g:add(x, y, { name = tap .. "hidden" })
  end

  -- The rows [state | learned rows | actions] through the layers: the velocity of the actions.
  local function action(g, seen, x, t)
    local time <const> = condition(g, t)
    local state <const> = g:state { entries = count(head, "max_state_dim", 64) }
    local rows <const> = { two(g, state, "state_encoder", width, "state") }
    if c.future then
      rows[2] = g:tensor { tensor = A .. "future_tokens.weight", rows = c.future, cols = width, name = "future" }
    end
    rows[#rows + 1] = encode(g, x, t)
    local y = g:concat(rows, { name = "tokens" })
    for l = 0, blocks.layers - 1 do y = block(g, y, l, seen, time) end
    y = adaptive(g, y, time, A .. "model.proj_out_1", { scale = width, shift = 0 }, 1e-6, "final", "out_mod")
    y = linear(g, y, A .. "model.proj_out_2", count(head.diffusion_model_cfg, "output_dim", 1024), { name = "out" })
    return two(g, g:take(y, { first = y.rows - horizon, rows = horizon }), "action_decoder", dim, "action_out")
  end

  text.vocab, text.scale, text.round_logits = count(c.text, "vocab_size", 151680), 1.0, false
  text.mask, text.picture, text.bos, text.eos, text.max_tokens = "causal_all", c.image_token, -1, -1, 256
  text.embed, text.head = { T .. "embed_tokens.weight", m.head or B .. "language_model.lm_head.weight" }, {}
  return {
    name = m.name,
    slots = given.slots or given.cameras or c.slots or { "image" },
    vision = c.pictures or eagle(m, c, text.width),
    text = text,
    flow = { horizon = horizon, dim = dim, steps = read.steps(head, "num_inference_timesteps", 4),
             buckets = count(head, "num_timestep_buckets", 1000) },
    prefill = prefill,
    action = action,
    ignored = m.ignored or { B .. "vision_model.vision_model.head.*", B .. "language_model.lm_head.weight" },
  }
end
