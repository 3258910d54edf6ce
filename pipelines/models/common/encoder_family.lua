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
  local mlp <const>, layers <const> = count(c, "intermediate_size", 3072), count(c, "num_hidden_layers", 12)
  local eps <const> = number(c, "layer_norm_eps", 1e-12)
  local relative <const> = m.relative and m.relative(c, before) or nil
  local function norm(g, x, name, tap)
    return g:norm(x, { weight = name .. ".weight", bias = name .. ".bias", eps = eps, name = tap })
  end
  local function linear(g, x, name, out, tap)
    return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out, bf16 = true, name = tap })
  end
  local positions = count(c, "max_position_embeddings", d.positions)
  local text = m.sums(c, before .. "embeddings.", positions)
  text.vocab, text.scale, text.round_logits, text.mask = count(c, "vocab_size", d.vocab), 1.0, false, "bidir"
  text.bos, text.eos, text.max_tokens, text.pool = -1, -1, positions, "mean"
  text.embed, text.head = { before .. "embeddings.word_embeddings.weight" }, {}
  text.layers, text.width = layers, width
  text.enter = function(g, x) return norm(g, x, before .. "embeddings.LayerNorm", "first") end
  text.layer = function(g, x, i)
    local at <const> = before .. "encoder.layer." .. i .. "."
    local o = { heads = heads, head_dim = width // heads, relative = relative, bf16 = true }
    for _, r in ipairs { "q", "k", "v" } do
      o[r], o[r .. "_bias"] = at .. m.layer[r] .. ".weight", at .. m.layer[r] .. ".bias"
    end
    local y = linear(g, g:attention(x, o), at .. m.layer.o, width, "attn_out")
    x = norm(g, g:add(y, x), at .. m.layer.norm1, "norm1")
    y = g:activation(linear(g, x, at .. m.layer.up, mlp, "up"), { kind = act, name = "act" })
    y = linear(g, y, at .. m.layer.down, width, "mlp_out")
    return norm(g, g:add(y, x), at .. m.layer.norm2, "norm2")
  end
  return { name = m.name, text = text,
           ignored = { before .. "embeddings.position_ids", before .. "pooler.*", "lm_head.*", "cls.*" } }
end
