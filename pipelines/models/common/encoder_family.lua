-- Sentence encoders of four architectures: layers whose norms stand behind their halves, positions that were
-- learned, one vector a text. `given` = { config, shapes, size, arch }. A key that config.json lacks has the
-- default of BertConfig, MPNetConfig, DistilBertConfig or RobertaConfig; that also where XLM-R's and
-- CamemBERT's own classes say another number of words, which their folders always name.
local read <const> = include("common/configuration.lua")
local count <const> = read.count

local activations <const> = { gelu = "gelu_erf", gelu_new = "gelu", gelu_pytorch_tanh = "gelu" }

-- Where the tensors' names begin: published encoders leave the model's own prefix out, trainers do not.
local function prefix(m)
  for _, before in ipairs { "", m.prefix .. ".", "auto_model.", "0.auto_model." } do
    if given.shapes and given.shapes[before .. "embeddings.word_embeddings.weight"] then return before end
  end
  return ""
end

-- What config.json calls the sizes, but where a model's `keys` say otherwise.
local named <const> = { width = "hidden_size", heads = "num_attention_heads", mlp = "intermediate_size",
                        layers = "num_hidden_layers", act = "hidden_act" }

-- Names in a layer of BERT and its kin.
local bert <const> = {
  q = "attention.self.query", k = "attention.self.key", v = "attention.self.value",
  o = "attention.output.dense", norm1 = "attention.output.LayerNorm", up = "intermediate.dense",
  down = "output.dense", norm2 = "output.LayerNorm",
}

-- m = { name, types = set of model_type, prefix = of a trainer's names, sizes, defaults, keys, layers = where
-- the layers' names begin, layer = names in a layer where they are not BERT's, sums(c, before, positions) = what is
-- added to the words' rows, relative(c, before) }
return function(m)
  local c = given.config
  if c and not m.types[c.model_type] or given.shapes and not c then return false end
  if not c then
    if given.arch ~= m.name then return false end
    c = m.sizes[given.size] or error("size must be full, small or tiny", 0)
  end
  local d <const>, key <const>, names <const> = m.defaults, m.keys or named, m.layer or bert
  read.word(c, "position_embedding_type", { "absolute" }, "absolute")
  if read.flag(c, "is_decoder", false) then read.refuse(c, "is_decoder", "true is not supported") end
  local act = c[key.act] == nil and "gelu_erf" or activations[c[key.act]]
  if not act then
    read.refuse(c, key.act, "must be gelu or gelu_new, is " .. read.shown(c[key.act]))
  end
  local width, heads = count(c, key.width, 768), count(c, key.heads, 12)
  if width % heads ~= 0 then
    read.refuse(c, key.heads, heads .. " do not divide " .. key.width .. " " .. width)
  end
  local before <const> = prefix(m)
  local mlp <const>, layers <const> = count(c, key.mlp, 3072), count(c, key.layers, d.layers or 12)
  local eps <const> = m.eps or read.above(c, "layer_norm_eps", 0.0, 1e-12, 1.0)
  local relative <const> = m.relative and m.relative(c, before) or nil
  -- The oldest files call a norm's two vectors otherwise, and some trainers still write them so.
  local function norm(g, x, name, tap)
    local old <const> = given.shapes and given.shapes[name .. ".gamma"]
    return g:norm(x, { weight = name .. (old and ".gamma" or ".weight"), bias = name .. (old and ".beta" or ".bias"),
                       eps = eps, name = tap })
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
    local at <const> = before .. (m.layers or "encoder.layer.") .. i .. "."
    local o = { heads = heads, head_dim = width // heads, relative = relative, bf16 = true }
    for _, r in ipairs { "q", "k", "v" } do
      o[r], o[r .. "_bias"] = at .. names[r] .. ".weight", at .. names[r] .. ".bias"
    end
    local y = linear(g, g:attention(x, o), at .. names.o, width, "attn_out")
    x = norm(g, g:add(y, x), at .. names.norm1, "norm1")
    y = g:activation(linear(g, x, at .. names.up, mlp, "up"), { kind = act, name = "act" })
    y = linear(g, y, at .. names.down, width, "mlp_out")
    return norm(g, g:add(y, x), at .. names.norm2, "norm2")
  end
  return { name = m.name, text = text,
           ignored = { before .. "embeddings.position_ids", before .. "pooler.*", "lm_head.*", "cls.*",
                       "vocab_transform.*", "vocab_layer_norm.*", "vocab_projector.*" } }
end
