-- Text models of the shape that Llama made common: pre-norm layers, rotated keys, a gated feed-forward.
-- From a Hugging Face folder; config.json in the style of transformers 5 (rope_parameters, layer_types) or of
-- the files that were published before it. A key that it lacks has the default of the configuration class.
-- `given` = { config, generation, shapes, size, arch }.

-- Sizes without a checkpoint, beside the full one: small for tests on a CPU; tiny as in the golden cases.
local sizes <const> = {
  small = { hidden_size = 256, intermediate_size = 704, num_hidden_layers = 6, num_attention_heads = 8,
            num_key_value_heads = 2, head_dim = 32, vocab_size = 4096, tie_word_embeddings = true },
  tiny  = { hidden_size = 64, intermediate_size = 128, num_hidden_layers = 4, num_attention_heads = 4,
            num_key_value_heads = 2, head_dim = 16, vocab_size = 512 },
}

local read <const> = include("common/configuration.lua")
local count <const> = read.count
local layers_of <const> = include("common/decoder_layers.lua")

local function base(m, c, p)
  return read.above(p.rope_theta ~= nil and p or c, "rope_theta", 1.0, m.theta or 10000.0)
end

-- The rotation of the layers that see everything: its base, and how it is stretched, of the kinds that the
-- family has. Another stretch is another model's: near positions would come out nearly right.
local function rotation(m, c)
  local p = read.part(c, "rope_parameters")
  if p.full_attention ~= nil then p = read.part(p, "full_attention") end
  for _, scaling in ipairs { read.part(c, "rope_scaling"), p } do
    local kind = scaling.rope_type or scaling.type or "default"
    if kind ~= "default" then
      if not (m.stretches and m.stretches[kind]) then
        read.refuse(scaling, scaling.rope_type ~= nil and "rope_type" or "type", read.shown(kind)
                    .. " is not supported; take it out for texts that max_position_embeddings holds")
      end
      local stretch = { kind = kind, factor = read.above(scaling, "factor", 0.0) }
      if kind == "llama3" then
        stretch.low = read.above(scaling, "low_freq_factor", 0.0)
        stretch.high = read.above(scaling, "high_freq_factor", stretch.low)
        stretch.original = read.above(scaling, "original_max_position_embeddings", 0.0)
      end
      return base(m, c, p), stretch
    end
  end
  return base(m, c, p), nil
end

-- Tokens that end a text: generation_config.json's, else config.json's; a number or a list.
local function ends(c, vocab)
  local of = given.generation or {}
  if of.eos_token_id == nil then of = c end
  local ids, n = { of.eos_token_id }, of.eos_token_id == nil and 0 or 1
  if type(of.eos_token_id) == "table" then ids, n = read.list(of, "eos_token_id") end
  local list = {}
  for i = 1, n do list[i] = read.token(of, "eos_token_id", vocab, ids[i]) end
  return list
end

-- The layers with a window and its width; nil where no layer has one. slides(i): of layer i, from 0 on,
-- where the file does not list them.
local function windows(c, layers, slides, default)
  local list, any = {}, false
  local kinds <const> = c.layer_types
  if kinds ~= nil and (type(kinds) ~= "table" or #kinds < layers) then
    read.refuse(c, "layer_types", "must be a list of " .. layers .. " kinds, a layer each")
  end
  for i = 1, layers do
    if kinds and kinds[i] ~= "sliding_attention" and kinds[i] ~= "full_attention" then
      read.refuse(c, "layer_types", read.shown(kinds[i]) .. ", of layer " .. i - 1
                  .. ", is not supported; it must be full_attention or sliding_attention")
    end
    if kinds then list[i] = kinds[i] == "sliding_attention" else list[i] = slides(i - 1) end
    any = any or list[i]
  end
  return any and count(c, "sliding_window", default, 1 << 40) or nil, list
end

-- 4-bit weights as AutoAWQ and AutoGPTQ write them; other tools' layouts look alike and are not.
local function packing(c)
  if c.quantization_config == nil then return nil end
  local q <const> = read.part(c, "quantization_config")
  local function must(key, want, default)
    local x = q[key]
    if x == nil then x = default end
    for _, w in ipairs(want) do if x == w then return x end end
    read.refuse(q, key, read.shown(x) .. " is not supported")
  end
  must("bits", { 4 }, q.w_bit)
  local kind = must("quant_method", { "awq", "gptq" })
  if kind == "awq" then must("version", { "gemm", "GEMM" }, "gemm") end
  local kept <const>, n <const> = read.list(q, "modules_to_not_convert")
  for i = 1, n do
    if kept[i] ~= "lm_head" then
      read.refuse(q, "modules_to_not_convert", read.shown(kept[i]) .. " is not supported")
    end
  end
  if read.flag(q, "lm_head", false) then read.refuse(q, "lm_head", "a head of 4 bits is not supported") end
  local size <const> = q.group_size ~= nil and "group_size" or "q_group_size"
  local group <const> = q[size] == -1 and 0 or count(q, size, 128)
  local version = kind == "gptq" and must("checkpoint_format", { "gptq", "gptq_v2" }, "gptq")
  return { kind = kind, group = group, minus = version == "gptq",
           ordered = kind == "gptq" and read.flag(q, "desc_act", false) }
end

local function activation(m, c)
  local key <const> = m.gelu and "hidden_activation" or "hidden_act"
  local want <const> = m.gelu and "gelu_pytorch_tanh" or "silu"
  read.word(c, key, { want }, want)
  for _, other in ipairs { "mlp_bias", "use_bidirectional_attention" } do
    if read.flag(c, other, false) then read.refuse(c, other, "true is not supported") end
  end
  return m.gelu and "gelu" or "silu"
end

-- The projections that have a bias.
local function biased(m, c)
  if m.qkv_bias then return { q_proj = true, k_proj = true, v_proj = true } end
  return read.flag(c, "attention_bias", false) and { q_proj = true, k_proj = true, v_proj = true, o_proj = true } or nil
end

-- What differs between layers and from most in attention: m.attention(c) may say scale, cap and window_theta.
local function scores(m, c, layers)
  local theta <const>, stretch <const> = rotation(m, c)
  local s <const> = m.attention and m.attention(c) or {}
  local window <const>, slides <const> = windows(c, layers, m.slides and m.slides(c) or function() return false end,
                                                 m.window)
  return function(i)
    local near <const> = window and slides[i + 1]
    local turn = { theta = theta, stretch = stretch, f32 = m.angles_f32 }
    if near and s.window_theta then turn = { theta = s.window_theta, f32 = m.angles_f32 } end
    return { rotation = turn, window = near and math.min(window, 1 << 20) or nil, scale = s.scale, cap = s.cap }
  end
end

-- m = {
--   name, type = model_type of config.json, full = the size without a checkpoint, quantization = how its
--   layers are packed, by_name = true: never recognised, only asked for,
--   config = the part of a larger model's configuration that is its text's, prefix = that of its tensors,
--   theta, heads, kv_heads (nil: as heads), head_dim (nil: width / heads), window, tied: defaults,
--   stretches = { kind = true }, slides(c): which layers see a window, attention(c): scores,
--   qkv_bias, head_norms, post_norms, gelu, offset (of norms), embedding(width) = factor of embedding rows,
--   cap(c): of logits, bos: texts begin with bos_token_id, vocab, mlp, width, positions: defaults }
return function(m)
  local c = m.config or given.config
  local M <const> = m.prefix or "model."
  if not m.config then
    if c and c.model_type ~= m.type or given.shapes and not c then return false end
    if m.by_name and given.arch ~= m.name or not c and given.arch ~= m.name then return false end
  end
  if not c then
    c = given.size == "full" and m.full or sizes[given.size] or error("size must be full, small or tiny", 0)
    c.rope_theta = c.rope_theta or m.full.rope_theta
    c.quantization_config = m.quantization
    if given.layers then c.num_hidden_layers = given.layers end -- a measurement's
  end
  local act = activation(m, c)
  local width, heads = count(c, "hidden_size", m.width or 4096), count(c, "num_attention_heads", m.heads or 32)
  local layers, vocab = count(c, "num_hidden_layers", m.layers or 32), count(c, "vocab_size", m.vocab)
  local stops <const> = ends(c, vocab)
  local tied <const> = read.flag(c, "tie_word_embeddings", m.tied or false)
  local text = layers_of {
    prefix = M, layers = layers, width = width, heads = heads,
    kv_heads = read.kv_heads(c, heads, m.kv_heads or heads), head_dim = read.head_dim(c, width, heads, m.head_dim),
    mlp = count(c, "intermediate_size", m.mlp), eps = read.above(c, "rms_norm_eps", 0.0, 1e-6), offset = m.offset,
    activation = act, biased = biased(m, c), head_norms = m.head_norms, post_norms = m.post_norms,
    packing = packing(c), scores = scores(m, c, layers),
  }
  text.vocab, text.scale, text.round_logits = vocab, m.embedding and m.embedding(width) or 1.0, true
  text.mask, text.cap = "causal_all", m.cap and m.cap(c) or nil
  text.bos = m.bos and c.bos_token_id ~= nil and read.token(c, "bos_token_id", vocab, c.bos_token_id) or -1
  text.eos, text.ends = stops[1] or -1, stops
  text.penalty = read.above(given.generation or {}, "repetition_penalty", 1e-6, 1.0, 1e6)
  text.max_tokens = count(c, "max_position_embeddings", m.positions)
  text.embed = { M .. "embed_tokens.weight" }
  -- A head of its own in the file counts although the configuration ties it, as with transformers 5.
  text.head = { "lm_head.weight", tied and M .. "embed_tokens.weight" or nil }
  return { name = m.name, text = text, ignored = {} }
end
