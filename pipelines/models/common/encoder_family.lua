-- Sentence encoders of two architectures: layers whose norms stand behind their halves, positions that were
-- learned, one vector a text. `given` = { config, shapes, size, arch }. A key that config.json lacks has the
-- default of the architecture's configuration class.
local read <const> = include("common/configuration.lua")
local count <const>, number <const> = read.count, read.number

local activations <const> = { gelu = "gelu_erf", gelu_new = "gelu", gelu_pytorch_tanh = "gelu" }

-- Where the tensors' names begin: published encoders leave the model's own prefix out, trainers do not.
local function prefix(m)
  for _, before in ipairs { "", m.type .. ".", "auto_model.", "0.auto_model." } do
    if given.shapes and given.shapes[before .. "embeddings.word_embeddings.weight"] then return before end
  end
  return ""
end

-- m = { name, type, full, defaults, layer = names in a layer, sums(c, before) = what is added to the words'
-- rows, relative(c, before), ignored }
return function(m)
  local c = given.config
  if c and c.model_type ~= m.type or given.shapes and not c then return false end
  if not c then
    if given.arch ~= m.name then return false end
    c = m.sizes[given.size] or error("size must be full, small or tiny", 0)
  end
  local d <const> = m.defaults
  local act = activations[c.hidden_act or "gelu"]
  if not act then error("hidden_act must be gelu or gelu_new, is " .. tostring(c.hidden_act), 0) end
  local width, heads = count(c, "hidden_size", 768), count(c, "num_attention_heads", 12)
  if width % heads ~= 0 then
    error("num_attention_heads " .. heads .. " do not divide hidden_size " .. width, 0)
  end
  local before <const> = prefix(m)
  local layer <const> = before .. "encoder.layer.{}."
  local tensors = { first = before .. "embeddings.LayerNorm.weight",
                    first_bias = before .. "embeddings.LayerNorm.bias" }
  for role, name in pairs(m.layer) do
    tensors[role] = layer .. name .. ".weight"
    tensors[role .. "_bias"] = layer .. name .. ".bias"
  end
  local positions = count(c, "max_position_embeddings", d.positions)
  local text = m.sums(c, before .. "embeddings.", positions)
  text.vocab, text.scale, text.round_logits, text.mask = count(c, "vocab_size", d.vocab), 1.0, false, "bidir"
  text.bos, text.eos, text.max_tokens, text.pool = -1, -1, positions, "mean"
  text.embed, text.head = { before .. "embeddings.word_embeddings.weight" }, {}
  text.stack = {
    layers = count(c, "num_hidden_layers", 12), width = width, heads = heads, kv_heads = heads,
    head_dim = width // heads, mlp = count(c, "intermediate_size", 3072), norm = "layer", norm_offset = 0.0,
    after = true, eps = number(c, "layer_norm_eps", 1e-12), theta = 0.0, activation = act, tensors = tensors,
    relative = m.relative and m.relative(c, before) or nil,
  }
  return { name = m.name, text = text,
           ignored = { before .. "embeddings.position_ids", before .. "pooler.*", "lm_head.*", "cls.*" } }
end
