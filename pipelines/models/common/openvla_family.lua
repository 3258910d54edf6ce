-- OpenVLA (Prismatic VLMs fine-tuned to actions, openvla/openvla): one or two picture towers, an MLP
-- projector, and a Llama-2 that says an action as the last ids of its vocabulary.
-- `given` = { config, preprocessor, statistics, shapes, size, arch }: a checkpoint's config.json,
-- preprocessor_config.json, statistics by dataset, and tensor shapes; or a named size.
-- A key that config.json lacks has the default of the Hugging Face class that reads it.

-- What the names of timm's models imply, by v0.9: activation gelu_erf, layer norm eps 1e-6, fused qkv.
-- `before`: tensors whose rows stand before the patches; scaled: each half of a block has a scale.
local timm <const> = {
  ["vit_large_patch14_reg4_dinov2.lvd142m"] = {
    embed_dim = 1024, depth = 24, num_heads = 16, mlp_ratio = 4.0, patch = 14, scaled = true,
    before = { { name = "cls_token", rows = 1 }, { name = "reg_token", rows = 4 } },
    mean = { 0.484375, 0.455078125, 0.40625 }, std = { 0.228515625, 0.2236328125, 0.224609375 },
  },
  ["vit_so400m_patch14_siglip_224"] = {
    embed_dim = 1152, depth = 27, num_heads = 16, mlp_ratio = 3.7362, patch = 14, before = {},
    mean = { 0.5, 0.5, 0.5 }, std = { 0.5, 0.5, 0.5 }, pooled = true,
  },
}
timm["vit_so400m_patch14_siglip_384"] = timm["vit_so400m_patch14_siglip_224"]
-- Its tensors' names in a block.
local names <const> = { qkv = "attn.qkv", o = "attn.proj", up = "mlp.fc1", down = "mlp.fc2", norm1 = "norm1",
                        norm2 = "norm2" }
local factors <const> = { o = "ls1.scale_factor", down = "ls2.scale_factor" }
local fused <const> = { "vit_large_patch14_reg4_dinov2.lvd142m", "vit_so400m_patch14_siglip_224" }

-- Sizes without a checkpoint: full as released; small for tests on a CPU; tiny as in the golden cases.
local sizes <const> = {
  full = { image_sizes = { 224, 224 }, timm_model_args = { {}, {} }, text_config = { vocab_size = 32064 } },
  small = {
    image_sizes = { 224, 224 },
    timm_model_args = { { embed_dim = 192, depth = 6, num_heads = 4 },
                        { embed_dim = 192, depth = 6, num_heads = 4 } },
    text_config = { hidden_size = 384, intermediate_size = 1024, num_hidden_layers = 6,
                    num_attention_heads = 6, vocab_size = 32064 },
  },
  tiny = {
    image_sizes = { 56, 56 },
    timm_model_args = { { embed_dim = 32, depth = 3, num_heads = 2 },
                        { embed_dim = 64, depth = 2, num_heads = 4, mlp_ratio = 2.0 } },
    text_config = { hidden_size = 64, intermediate_size = 128, num_hidden_layers = 2,
                    num_attention_heads = 4, vocab_size = 768 },
  },
}

local L <const> = "language_model."
local B <const> = "vision_backbone."
local T <const> = { B .. "featurizer.", B .. "fused_featurizer." }

local read <const> = include("common/configuration.lua")
local count <const> = read.count

local layers_of <const> = include("common/decoder_layers.lua")
local pictures_of <const> = include("common/picture_layers.lua")

local part <const>, list <const> = read.part, read.list

local function heads_of(width, heads, what)
  if width % heads ~= 0 then
    error(what .. ": a width of " .. width .. " does not divide into " .. heads .. " heads", 0)
  end
  return width // heads
end

-- Mean and deviation of a tower's pixels: what the processor really applies, not what it was made of.
local function pixels(index, kind)
  local p = part(list(given.preprocessor or {}, "tvf_normalize_params"), index)
  return p.mean or kind.mean, p.std or kind.std
end

-- A tower runs all of its blocks but the last, whose output nobody reads, and has no final norm.
local function tower(c, index, ignored)
  local id = list(c, "timm_model_ids")[index] or fused[index]
  local kind = timm[id]
  if not kind then read.refuse(c, "timm_model_ids", read.shown(id) .. " is not known") end
  local args, size = part(list(c, "timm_model_args"), index), list(c, "image_sizes")
  local width, depth = count(args, "embed_dim", kind.embed_dim), count(args, "depth", kind.depth)
  local heads, ratio = count(args, "num_heads", kind.num_heads), read.above(args, "mlp_ratio", 0.0, kind.mlp_ratio)
  local act = list(c, "timm_override_act_layers")[index]
  if act then read.refuse(c, "timm_override_act_layers", read.shown(act) .. " is not supported") end
  if depth < 2 then read.refuse(args, "depth", "must be 2 or more, is " .. depth) end
  if ratio >= 64 then read.refuse(args, "mlp_ratio", "must be below 64, is " .. ratio) end
  local P = T[index]
  local before, before_rows = {}, 0
  for i, b in ipairs(kind.before) do
    before[i], before_rows = { name = P .. b.name, rows = b.rows }, before_rows + b.rows
  end
  for _, name in ipairs { "blocks." .. (depth - 1) .. ".*", "norm.*", kind.pooled and "attn_pool.*" } do
    ignored[#ignored + 1] = P .. name
  end
  local mean, std = pixels(index, kind)
  heads_of(width, heads, "timm_model_args")
  local t = pictures_of {
    prefix = P .. "blocks.", layers = depth - 1, width = width, heads = heads, mlp = math.floor(width * ratio),
    eps = 1e-6, activation = "gelu_erf", factors = kind.scaled and factors or nil, names = names,
    image_size = count(size, index, 224), patch = kind.patch, embed = P .. "patch_embed.proj",
    position = P .. "pos_embed", before = #before > 0 and before or nil,
  }
  t.mean, t.std = mean, std
  return t, before_rows
end

-- The projector reads the patches of the towers beside each other: of one two layers, of two three.
local function projector(widths, before, width)
  local sum = 0
  for _, n in ipairs(widths) do sum = sum + n end
  local outs = #widths > 1 and { 4 * sum, width, width } or { width, width }
  return function(g, ...)
    local towers = { ... }
    for i, x in ipairs(towers) do
      if before[i] > 0 then towers[i] = g:take(x, { first = before[i], rows = x.rows - before[i] }) end
    end
    local x = towers[2] and g:beside(towers[1], towers[2]) or towers[1]
    for i, out in ipairs(outs) do
      if i > 1 then x = g:activation(x, { kind = "gelu_erf" }) end
      x = g:linear(x, { weight = "projector.fc" .. i .. ".weight", bias = "projector.fc" .. i .. ".bias", out = out,
                        bf16 = true, name = i < #outs and "projector." .. i or nil })
    end
    return x
  end
end

local function llama(t)
  if t.rope_scaling then read.refuse(t, "rope_scaling", "is not supported") end
  read.word(t, "hidden_act", { "silu" }, "silu")
  if read.flag(t, "mlp_bias", false) then read.refuse(t, "mlp_bias", "true is not supported") end
  local width, heads = count(t, "hidden_size", 4096), count(t, "num_attention_heads", 32)
  local turned <const> = part(t, "rope_parameters")
  read.word(turned, "rope_type", { "default" }, "default")
  local theta = read.above(turned.rope_theta ~= nil and turned or t, "rope_theta", 1.0, 10000.0)
  return layers_of {
    prefix = L .. "model.", layers = count(t, "num_hidden_layers", 32), width = width, heads = heads,
    kv_heads = read.kv_heads(t, heads, heads), head_dim = read.head_dim(t, width, heads),
    mlp = count(t, "intermediate_size", 11008), eps = read.above(t, "rms_norm_eps", 0.0, 1e-6), activation = "silu",
    biased = read.flag(t, "attention_bias", false)
      and { q_proj = true, k_proj = true, v_proj = true, o_proj = true } or nil,
    scores = function() return { rotation = { theta = theta } } end,
  }
end

-- Tokens of an action: as many as its statistics have dimensions. Several datasets may disagree.
local function dimensions()
  local same, most = nil, 0
  for _, set in pairs(given.statistics or {}) do
    local n = type(set) == "table" and type(set.action) == "table" and type(set.action.q01) == "table"
      and #set.action.q01 or 0
    if n > 0 then
      if same == nil then same = n elseif same ~= n then same = false end
      most = math.max(most, n)
    end
  end
  if same == nil then return 7, 7 end
  return same or nil, most
end

-- OpenVLA-OFT: a head and a projector of the state in files of their own beside the model's (their
-- tensors under the files' names) make a chunk in one bidirectional forward. How many actions it has is
-- in no file: 8 as for LIBERO, 25 for two arms of 7, unless the configuration or the caller says.
local H <const>, S <const> = "action_head.model.", "proprio_projector."
local parts <const> = { "action_head.safetensors", "proprio_projector.safetensors" }

local function chunk(c, width, head)
  local shapes = given.shapes or head and {
    [H .. "fc1.weight"] = { width, 7 * width }, [H .. "fc2.weight"] = { 7, width },
    [H .. "mlp_resnet_blocks.0.ffn.1.weight"] = { width, width },
    [H .. "mlp_resnet_blocks.1.ffn.1.weight"] = { width, width },
    [S .. "fc1.weight"] = { width, 8 },
  } or {}
  local first, last = shapes[H .. "fc1.weight"], shapes[H .. "fc2.weight"]
  if not first or not last then return nil end
  local dim, state = last[1], shapes[S .. "fc1.weight"]
  local horizon = given.horizon or count(c, "num_actions_chunk", dim == 14 and 25 or 8)
  local function normed(g, x, norm, name, out, tap)
    x = g:norm(x, { weight = norm .. ".weight", bias = norm .. ".bias", eps = 1e-5, name = tap and "head.norm" })
    return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out, bf16 = true, name = tap })
  end
  local function relu(g, x) return g:activation(x, { kind = "relu" }) end
  local function action(g)
    local x = g:side_by_side(g:hidden { rows = horizon * dim, cols = first[2] // dim }, { rows = dim })
    x = relu(g, normed(g, x, H .. "layer_norm1", H .. "fc1", first[1], "head.in"))
    local i = 0
    while shapes[H .. "mlp_resnet_blocks." .. i .. ".ffn.1.weight"] do
      local block = H .. "mlp_resnet_blocks." .. i .. ".ffn."
      local y = relu(g, normed(g, x, block .. "0", block .. "1", first[1]))
      x = g:add(y, x, { name = "head.block" .. i })
      i = i + 1
    end
    return normed(g, x, H .. "layer_norm2", H .. "fc2", dim)
  end
  local function dense(g, x, name, tap)
    return g:linear(x, { weight = S .. name .. ".weight", bias = S .. name .. ".bias", out = width, name = tap })
  end
  -- The state as a row of the text, before the prompt.
  local function proprio(g)
    local x = dense(g, g:state { entries = state[2] }, "fc1", "state_in")
    return dense(g, g:activation(x, { kind = "gelu_erf", bf16 = true }), "fc2", "state_out")
  end
  return { horizon = horizon, dim = dim, state = state and proprio or nil }, action
end

-- A token of the text, the first where there are several.
local function id(t, key, vocab, default)
  local x = t[key]
  if type(x) == "table" then x = list(t, key)[1] end
  if x == nil then x = default end
  return read.token(t, key, vocab, x)
end

-- m = { name, by_name, parallel, head }. by_name: never recognised, only asked for; parallel: a chunk of
-- actions as the next tokens of one bidirectional forward; head: only with one, which random weights
-- have as on LIBERO.
return function(m)
  local c = given.config
  if m.by_name and given.arch ~= m.name then return false end
  if c and c.model_type ~= "openvla" or given.shapes and not c then return false end
  if not c and given.arch ~= m.name then return false end
  c = c or sizes[given.size] or error("size must be full, small or tiny", 0)
  local t = part(c, "text_config")
  local ignored, towers, widths, before = {}, {}, {}, {}
  for i = 1, c.use_fused_vision_backbone == false and 1 or 2 do
    towers[i], before[i] = tower(c, i, ignored)
    widths[i] = towers[i].width
  end
  local vocab = count(t, "vocab_size", 32000)
  local text = llama(t)
  local same, most = dimensions()
  -- As many as the statistics say; where they do not, or there is no checkpoint, as the pipeline does.
  local tokens = given.config and same or given.count or same
  local chunks, action
  if m.parallel then
    chunks = { horizon = given.horizon or 8, dim = given.dim or same or most }
  else
    chunks, action = chunk(c, text.width, m.head)
  end
  if m.head and not chunks then return { parts = parts } end
  local bidir = chunks ~= nil
  text.vocab, text.scale, text.round_logits, text.lead = vocab, 1.0, true, true
  text.mask = given.mask or bidir and "bidir" or "causal_all"
  text.bos, text.eos, text.max_tokens = id(t, "bos_token_id", vocab, 1), id(t, "eos_token_id", vocab, 2), 256
  text.embed = { L .. "model.embed_tokens.weight" }
  text.head = { t.tie_word_embeddings and L .. "model.embed_tokens.weight" or L .. "lm_head.weight" }
  return {
    name = m.name,
    slots = given.slots or bidir and { "full_image", "wrist_image" } or { "full_image" },
    vision = { towers = towers, project = projector(widths, before, text.width) },
    text = text,
    chunk = chunks,
    action = action,
    tokens = (m.parallel or not chunks) and {
      count = tokens, most = given.config and most or math.max(most, tokens),
      vocab = vocab - count(c, "pad_to_multiple_of", 64),
      bins = count(c, "n_action_bins", 256),
    } or nil,
    ignored = ignored,
    parts = not m.parallel and parts or nil,
  }
end
