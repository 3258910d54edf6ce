-- Qwen2 and Qwen2.5: text alone, from a Hugging Face folder. A key that config.json lacks has the
-- default of Qwen2Config, which is not what any published size has.
-- `given` = { config, generation, shapes, size, arch }.

-- Sizes without a checkpoint, beside the full one: small for tests on a CPU; tiny as in the golden cases.
local sizes <const> = {
  small = { hidden_size = 256, intermediate_size = 704, num_hidden_layers = 6, num_attention_heads = 8,
            num_key_value_heads = 2, vocab_size = 4096, rope_theta = 1000000.0, tie_word_embeddings = true },
  tiny  = { hidden_size = 64, intermediate_size = 128, num_hidden_layers = 4, num_attention_heads = 4,
            num_key_value_heads = 2, vocab_size = 512, rope_theta = 1000000.0 },
}

local read <const> = include("common/configuration.lua")
local count <const>, number <const> = read.count, read.number

-- Newer files have the rotation in rope_parameters. Stretched angles (yarn and others) are another
-- model's: near positions would come out nearly right.
local function theta(c)
  local p = type(c.rope_parameters) == "table" and c.rope_parameters or {}
  for _, scaling in ipairs { type(c.rope_scaling) == "table" and c.rope_scaling or {}, p } do
    local kind = scaling.rope_type or scaling.type
    if kind and kind ~= "default" then
      error("rope_scaling " .. tostring(kind) .. " is not supported; take it out of config.json for "
            .. "texts that max_position_embeddings holds", 0)
    end
  end
  return number(p, "rope_theta", number(c, "rope_theta", 10000.0))
end

-- Tokens that end a text: generation_config.json's, else config.json's; a number or a list.
local function ends(c)
  local g = type(given.generation) == "table" and given.generation or {}
  local ids = g.eos_token_id
  if ids == nil then ids = c.eos_token_id end
  if type(ids) ~= "table" then ids = { ids } end
  local list = {}
  for i, id in ipairs(ids) do
    if math.type(id) ~= "integer" then error("eos_token_id must be a token or a list of tokens", 0) end
    list[i] = id
  end
  return list
end

-- The first layer that sees a window of keys and the window's width.
local function window(c, layers)
  if not c.use_sliding_window then return 0, 0 end
  local width, from = c.sliding_window, c.max_window_layers
  if from == nil then from = 28 end
  if math.type(width) ~= "integer" or width < 1 or math.type(from) ~= "integer" or from < 0 then
    error("use_sliding_window needs sliding_window and max_window_layers as whole numbers", 0)
  end
  if from >= layers then return 0, 0 end
  return math.min(width, 1 << 20), from
end

-- 4-bit weights as AutoAWQ and AutoGPTQ write them; other tools' layouts look alike and are not.
local function packing(c)
  local q = c.quantization_config
  if type(q) ~= "table" then return nil end
  local function must(key, want, default)
    local x = q[key]
    if x == nil then x = default end
    for _, w in ipairs(want) do if x == w then return x end end
    error("quantization_config." .. key .. ": " .. tostring(x) .. " is not supported", 0)
  end
  must("bits", { 4 }, q.w_bit)
  local kind = must("quant_method", { "awq", "gptq" })
  if kind == "awq" then must("version", { "gemm", "GEMM" }, "gemm") end
  if type(q.modules_to_not_convert) == "table" then
    for _, name in ipairs(q.modules_to_not_convert) do
      if name ~= "lm_head" then error("quantization_config.modules_to_not_convert is not supported", 0) end
    end
  end
  if q.lm_head then error("quantization_config.lm_head: a head of 4 bits is not supported", 0) end
  local group = q.group_size or q.q_group_size or 128
  local version = kind == "gptq" and must("checkpoint_format", { "gptq", "gptq_v2" }, "gptq")
  return { kind = kind, group = group == -1 and 0 or group, minus = version == "gptq",
           ordered = kind == "gptq" and q.desc_act == true }
end

-- m = { name, full, quantization, by_name }: the full size and how its layers are packed where there is no
-- checkpoint; by_name: never recognised, only asked for.
return function(m)
  local c = given.config
  if c and c.model_type ~= "qwen2" or given.shapes and not c then return false end
  if m.by_name and given.arch ~= m.name or not c and given.arch ~= m.name then return false end
  if not c then
    c = given.size == "full" and m.full or sizes[given.size] or error("size must be full, small or tiny", 0)
    c.quantization_config = m.quantization
  end
  local act = c.hidden_act or "silu"
  if act ~= "silu" then error("hidden_act must be silu, is " .. tostring(act), 0) end
  local width, heads = count(c, "hidden_size", 4096), count(c, "num_attention_heads", 32)
  local layers, vocab = count(c, "num_hidden_layers", 32), count(c, "vocab_size", 151936)
  if c.head_dim == nil and width % heads ~= 0 then
    error("num_attention_heads " .. heads .. " do not divide hidden_size " .. width, 0)
  end
  local seen, from = window(c, layers)
  local stops = ends(c)
  local g = type(given.generation) == "table" and given.generation or {}
  local layer <const> = "model.layers.{}."
  local tensors = {
    gate = layer .. "mlp.gate_proj.weight", up = layer .. "mlp.up_proj.weight",
    down = layer .. "mlp.down_proj.weight", o = layer .. "self_attn.o_proj.weight",
    norm1 = layer .. "input_layernorm.weight", norm2 = layer .. "post_attention_layernorm.weight",
    final = "model.norm.weight",
  }
  for _, name in ipairs { "q", "k", "v" } do
    tensors[name] = layer .. "self_attn." .. name .. "_proj.weight"
    tensors[name .. "_bias"] = layer .. "self_attn." .. name .. "_proj.bias"
  end
  local tied <const> = c.tie_word_embeddings == true
  return {
    name = m.name,
    text = {
      vocab = vocab, scale = 1.0, round_logits = true, mask = "causal_all",
      bos = -1, eos = stops[1] or -1, ends = stops,
      penalty = type(g.repetition_penalty) == "number" and g.repetition_penalty + 0.0 or 1.0,
      max_tokens = count(c, "max_position_embeddings", 32768),
      embed = { "model.embed_tokens.weight" },
      head = { tied and "model.embed_tokens.weight" or "lm_head.weight" },
      stack = {
        layers = layers, width = width, heads = heads, kv_heads = count(c, "num_key_value_heads", 32),
        head_dim = c.head_dim and count(c, "head_dim") or width // heads,
        mlp = count(c, "intermediate_size", 22016), norm = "rms", norm_offset = 0.0,
        eps = number(c, "rms_norm_eps", 1e-6), theta = theta(c), angles_f32 = true,
        window = seen, window_from = from, packing = packing(c), activation = "silu", tensors = tensors,
      },
    },
    ignored = tied and { "lm_head.weight" } or {},
  }
end
