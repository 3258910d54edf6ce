-- What GR00T N1.5 and N1.6 share: a picture tower and the first layers of a Qwen3, whose last rows a diffusion
-- transformer reads. Layers of the action head have a matrix for each kind of robot, its embodiment.
-- `given` = { config, robots, cameras, shapes, size, arch, embodiment, width, horizon }: config.json, and by tag what
-- experiment_cfg/metadata.json says of the robots that a checkpoint was trained for.
local read <const> = include("common/configuration.lua")
local count <const>, number <const> = read.count, read.number

local function table_of(x) return type(x) == "table" and x or {} end

local function dense(name) return { weight = name .. ".weight", bias = name .. ".bias" } end

local function category(name) return { weight = name .. ".W", bias = name .. ".b" } end

-- Layers of `layer`, a pattern, with weights and biases by role; `norms` and names without bias apart.
local function tensors(layer, names, biased)
  local t = {}
  for role, name in pairs(names) do
    t[role] = layer .. name .. ".weight"
    if biased then t[role .. "_bias"] = layer .. name .. ".bias" end
  end
  return t
end

local function tower(c, V, side, numbers)
  local act <const> = c.hidden_act or "gelu_pytorch_tanh"
  if act ~= "gelu_pytorch_tanh" then error("hidden_act must be gelu_pytorch_tanh, is " .. tostring(act), 0) end
  local width <const>, heads <const> = count(c, "hidden_size", 1152), count(c, "num_attention_heads", 16)
  if width % heads ~= 0 then error("num_attention_heads " .. heads .. " do not divide " .. width, 0) end
  local t = tensors(V .. "encoder.layers.{}.", {
    q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj", o = "self_attn.out_proj", up = "mlp.fc1",
    down = "mlp.fc2", norm1 = "layer_norm1", norm2 = "layer_norm2" }, true)
  t.final, t.final_bias = V .. "post_layernorm.weight", V .. "post_layernorm.bias"
  local one = {
    image_size = side, patch = count(c, "patch_size", 14), rest = true,
    mean = { 0.5, 0.5, 0.5 }, std = { 0.5, 0.5, 0.5 },
    patch_embed = dense(V .. "embeddings.patch_embedding"),
    position = V .. "embeddings.position_embedding.weight",
    -- A tower that is stored in float32 stays so: its rounding is most of what a bf16 plan loses.
    stack = { f32 = table_of(given.dtypes)[V .. "post_layernorm.weight"] == "F32",
              layers = count(c, "num_hidden_layers", 27), width = width, heads = heads, kv_heads = heads,
              head_dim = width // heads, mlp = count(c, "intermediate_size", 4304), norm = "layer", norm_offset = 0.0,
              eps = number(c, "layer_norm_eps", 1e-6), theta = 0.0, tensors = t },
  }
  for key, value in pairs(numbers or {}) do one[key] = value end
  return one
end

local function text_stack(c, T, layers)
  local t = tensors(T .. "layers.{}.", {
    q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj", o = "self_attn.o_proj",
    q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm", gate = "mlp.gate_proj", up = "mlp.up_proj",
    down = "mlp.down_proj", norm1 = "input_layernorm", norm2 = "post_attention_layernorm" })
  t.final = T .. "norm.weight"
  local heads <const>, scaling <const> = count(c, "num_attention_heads", 16), c.rope_scaling
  if type(scaling) == "table" and (scaling.rope_type or scaling.type or "default") ~= "default" then
    error("rope_scaling " .. tostring(scaling.rope_type or scaling.type) .. " is not supported", 0)
  end
  return { layers = layers, width = count(c, "hidden_size", 2048), heads = heads,
           kv_heads = count(c, "num_key_value_heads", 8), head_dim = count(c, "head_dim", 128),
           mlp = count(c, "intermediate_size", 6144), norm = "rms", norm_offset = 0.0,
           eps = number(c, "rms_norm_eps", 1e-6), theta = number(c, "rope_theta", 1000000.0), activation = "silu",
           tensors = t }
end

-- Layers of diffusers' BasicTransformerBlock.
local function block_stack(c, layer, norm)
  if c.positional_embeddings ~= nil then error("positional_embeddings are not supported", 0) end
  local heads <const>, dim <const> = count(c, "num_attention_heads"), count(c, "attention_head_dim")
  local names = { q = "attn1.to_q", k = "attn1.to_k", v = "attn1.to_v", o = "attn1.to_out.0", up = "ff.net.0.proj",
                  down = "ff.net.2", norm1 = norm == "scaled" and "norm1.linear" or "norm1" }
  if norm ~= "scaled" then names.norm2 = "norm3" end
  return { layers = count(c, "num_layers"), width = heads * dim, heads = heads, kv_heads = heads, head_dim = dim,
           mlp = 4 * heads * dim, norm = norm, norm_offset = 0.0, eps = 1e-5, theta = 0.0, activation = "gelu",
           tensors = tensors(layer, names, true) }
end

-- The number of the robot's kind. Tags that a folder does not number have those of the published code.
local function embodiment(m)
  local tag = given.embodiment or table_of(given.config).embodiment_tag
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
  return id
end

-- m: what differs. backbone, embodiments; c: { vision, text, select, image_token, image_size, tower, sizes, shuffle,
-- planes, connector, project, head, future, self, split, slots }.
return function(m, c)
  local B <const> = m.backbone
  local T <const>, A <const> = B .. "language_model.model.", "action_head."
  local head <const> = c.head
  local text <const> = text_stack(c.text, T, c.select)
  local features <const> = c.project or text.width
  local V <const> = B .. "vision_model.vision_model."
  local blocks <const> = block_stack(head.diffusion_model_cfg, A .. "model.transformer_blocks.{}.", "scaled")
  local width <const> = count(head, "input_embedding_dim", 1536)
  if blocks.width ~= width then
    error("diffusion_model_cfg: " .. blocks.heads .. " heads of " .. blocks.head_dim
          .. " are not input_embedding_dim " .. width, 0)
  end
  local crossed, pictured = {}, c.split and {} or nil
  for l = 0, blocks.layers - 1 do
    crossed[l + 1] = l % 2 == 0 or head.diffusion_model_cfg.interleave_self_attention == false
    if pictured then pictured[l + 1] = l % (2 * c.split) ~= 0 end
  end
  blocks.crossed = crossed
  local vision = {
    towers = { tower(c.vision, V, c.image_size, c.tower) }, shuffle = c.shuffle,
    projector = { dense(B .. "mlp1.0") }, sizes = c.sizes, planes = c.planes,
  }
  if c.connector == 2 then
    local first = dense(B .. "mlp1.1")
    first.rows = text.width
    vision.norm = { weight = B .. "mlp1.0.weight", bias = B .. "mlp1.0.bias", eps = 1e-5 }
    vision.projector = { first, dense(B .. "mlp1.3") }
    vision.activation = "gelu_erf"
  elseif c.connector ~= 1 then
    error("mlp_connector_layers must be 1 or 2, is " .. tostring(c.connector), 0)
  end
  local norm, stack
  if head.use_vlln ~= false then
    norm = { weight = A .. "vlln.weight", bias = A .. "vlln.bias", eps = 1e-5 }
    if c.self then stack = block_stack(c.self, A .. "vl_self_attention.transformer_blocks.{}.", "layer") end
  end
  local horizon <const> = given.shapes and c.horizon or given.horizon or c.horizon
  local D <const> = A .. "model."
  return {
    name = m.name,
    slots = given.slots or given.cameras or c.slots or { "image" },
    vision = vision,
    text = {
      vocab = count(c.text, "vocab_size", 151680), scale = 1.0, round_logits = false, mask = "causal_all",
      bos = -1, eos = -1, max_tokens = 256, picture = c.image_token, stack = text,
      embed = { T .. "embed_tokens.weight", B .. "language_model.lm_head.weight" }, head = {},
    },
    features = {
      width = features, norm = norm, stack = stack,
      project = c.project and dense("backbone.eagle_linear") or nil,
    },
    denoiser = {
      horizon = horizon, dim = given.shapes and count(head, "max_action_dim", 32) or given.width or
        count(head, "max_action_dim", 32),
      steps = count(head, "num_inference_timesteps", 4), state_dim = count(head, "max_state_dim", 64),
      categories = count(head, "max_num_embodiments", 32), category = embodiment(m),
      inner = count(head, "hidden_size", 1024), output = count(head.diffusion_model_cfg, "output_dim", 1024),
      buckets = count(head, "num_timestep_buckets", 1000), frequencies = 128, period = 10000.0, eps = 1e-6,
      state = { category(A .. "state_encoder.layer1"), category(A .. "state_encoder.layer2") },
      ["in"] = { category(A .. "action_encoder.W1"), category(A .. "action_encoder.W2"),
                 category(A .. "action_encoder.W3") },
      out = { category(A .. "action_decoder.layer1"), category(A .. "action_decoder.layer2") },
      time = { dense(D .. "timestep_encoder.timestep_embedder.linear_1"),
               dense(D .. "timestep_encoder.timestep_embedder.linear_2") },
      scale = dense(D .. "proj_out_1"), project = dense(D .. "proj_out_2"),
      position = { name = A .. "position_embedding.weight", rows = count(head, "max_seq_len", 1024) },
      future = c.future and { name = A .. "future_tokens.weight", rows = c.future } or nil,
      stack = blocks, pictured = pictured,
    },
    ignored = { V .. "head.*", B .. "language_model.lm_head.weight" },
  }
end
