-- What the flow-matching VLA models of openpi and LeRobot share: a picture tower, a text, and an
-- action expert that reads the text's keys layer by layer.
-- `given` = { config, shapes, size, arch }: a checkpoint's config.json and tensor shapes, or a named
-- size; and the name that was asked for, nil when a checkpoint is to be recognised.

-- openpi's variant names (gemma.py) and So400m/14: width, depth, mlp, heads, kv heads, head size.
local variants = {
  gemma_2b   = { width = 2048, depth = 18, mlp_dim = 16384, num_heads = 8, num_kv_heads = 1, head_dim = 256 },
  gemma_300m = { width = 1024, depth = 18, mlp_dim = 4096, num_heads = 8, num_kv_heads = 1, head_dim = 256 },
  dummy      = { width = 64, depth = 4, mlp_dim = 128, num_heads = 8, num_kv_heads = 1, head_dim = 16 },
}
local so400m = { image_size = 224, patch_size = 14, hidden_size = 1152, num_layers = 27, num_heads = 16,
                 intermediate_size = 4304 }

-- Sizes without a checkpoint: full as released; small for tests on a CPU; tiny as in the golden cases.
local sizes = {
  full  = { vision = so400m, text = variants.gemma_2b, expert = variants.gemma_300m, vocab = 257152 },
  small = { vision = { image_size = 224, patch_size = 14, hidden_size = 192, num_layers = 4, num_heads = 4,
                       intermediate_size = 512 },
            text   = { width = 256, depth = 6, mlp_dim = 1024, num_heads = 8, num_kv_heads = 1, head_dim = 64 },
            expert = { width = 128, depth = 6, mlp_dim = 512, num_heads = 8, num_kv_heads = 1, head_dim = 64 },
            vocab  = 4096 },
  tiny  = { vision = { image_size = 28, patch_size = 7, hidden_size = 32, num_layers = 2, num_heads = 2,
                       intermediate_size = 64 },
            text   = variants.dummy, expert = variants.dummy, vocab = 256 },
}

local read <const> = include("common/configuration.lua")
local layers_of <const> = include("common/decoder_layers.lua")
local expert_of <const> = include("common/expert_layers.lua")
local pictures_of <const> = include("common/picture_layers.lua")

local P <const> = "paligemma_with_expert.paligemma."
local V <const> = P .. "model.vision_tower.vision_model."
local X <const> = "paligemma_with_expert.gemma_expert."
local HEAD <const>  = P .. "lm_head.weight"
local EMBED <const> = P .. "model.language_model.embed_tokens.weight"

-- The number of rows of a stored tensor, or `default` where there is no checkpoint.
local function rows(name, default)
  local s = given.shapes and given.shapes[name]
  return s and s[1] or default
end

-- Sizes of a checkpoint: `geometry` where its maker wrote one, else the variant names, corrected by
-- what tensor shapes say.
local function geometry()
  local c = given.config
  if not c then return sizes[given.size] or error("size must be full, small or tiny") end
  local g = c.geometry
  if g ~= nil and not (type(g) == "table" and g.vision and g.text and g.expert) then
    read.refuse(c, "geometry", "must be an object with vision, text and expert")
  end
  if g then return { vision = g.vision, text = g.text, expert = g.expert, vocab = g.text.vocab_size } end
  local text, expert = variants[c.paligemma_variant or "gemma_2b"], variants[c.action_expert_variant or "gemma_300m"]
  for name, found in pairs { paligemma_variant = text or false, action_expert_variant = expert or false } do
    if not found then read.refuse(c, name, "must be gemma_2b, gemma_300m or dummy, is " .. read.shown(c[name])) end
  end
  return { vision = so400m, text = text, expert = expert, vocab = 257152 }
end

-- A product with options beside its tensors.
local function linear(g, x, name, out, tap)
  return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out, name = tap })
end

local function siglip(s)
  local t = pictures_of {
    prefix = V .. "encoder.layers.", layers = s.num_layers, width = s.hidden_size, heads = s.num_heads,
    mlp = s.intermediate_size, eps = 1e-6, final = V .. "post_layernorm", image_size = s.image_size,
    patch = s.patch_size, embed = V .. "embeddings.patch_embedding",
    position = V .. "embeddings.position_embedding.weight",
  }
  t.mean, t.std = { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 }
  return t
end

-- Camera slots: LeRobot lists its image features in the order the model saw them.
local function slots()
  local order = given.slots
  if order then return order end
  return { "base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb" }
end

-- m = { name, type, adaptive, max_tokens, marker, mask, by_name }: marker is a tensor that only this
-- model has; mask is "bidir" (text and pictures see each other, as released) or "causal" (text sees
-- pictures and earlier text); by_name: never recognised, only asked for.
return function(m)
  if m.by_name and given.arch ~= m.name then return false end
  local c = given.config or {}
  if given.shapes and not given.shapes[m.marker] then return false end
  if given.config and c.type and c.type ~= m.type then return false end
  local g = geometry()
  local long <const> = c.action_horizon ~= nil and "action_horizon" or "chunk_size"
  local horizon = read.count(c, long, given.horizon or m.horizon or 50)
  local wide <const> = read.count(c, "max_action_dim", 32)
  local dim = rows("action_out_proj.weight", given.width or wide)
  if given.shapes and c.max_action_dim ~= nil and wide ~= dim then
    read.refuse(c, "max_action_dim", "is " .. wide .. ", but action_out_proj.weight has " .. dim .. " rows")
  end
  local e = g.expert
  local width = e.width
  local expert = expert_of {
    prefix = X .. "model.", layers = e.depth, width = width, heads = e.num_heads, kv_heads = e.num_kv_heads,
    head_dim = e.head_dim, mlp = e.mlp_dim, eps = 1e-6, offset = 1.0, activation = "gelu",
    reads = function(i) return { layer = i, lead = m.adaptive and 0 or 1 } end,
  }

  -- The time as sines of periods between two, and the noisy actions.
  local function begin(b, x, t)
    local shortest, longest = read.periods(c)
    return b:waves(t, { cols = width, shortest = shortest, longest = longest }),
           linear(b, x, "action_in_proj", width, m.adaptive and "embeds" or "action_in")
  end

  -- pi0.5: the time conditions the expert's norms.
  local function conditioned(b, prompt, x, t)
    local time, y = begin(b, x, t)
    time = b:activation(linear(b, time, "time_mlp_in", width), { kind = "silu" })
    time = b:activation(linear(b, time, "time_mlp_out", width), { kind = "silu", f32 = true })
    return linear(b, expert(b, y, prompt, time), "action_out_proj", dim, "action_out")
  end

  -- pi0: the time is mixed into the actions; a row of the state, which does not see them, stands in front.
  local function mixed(b, prompt, x, t)
    local state = linear(b, b:state { entries = dim }, "state_proj", width, "state_in")
    local time, y = begin(b, x, t)
    y = linear(b, b:beside(y, time), "action_time_mlp_in", width, "time_in")
    y = linear(b, b:activation(y, { kind = "silu" }), "action_time_mlp_out", width, "time_out")
    y = expert(b, b:concat({ state, y }, { name = "embeds" }), prompt)
    return linear(b, b:take(y, { first = 1, rows = horizon }), "action_out_proj", dim, "action_out")
  end

  local text = layers_of {
    prefix = P .. "model.language_model.", layers = g.text.depth, width = g.text.width, heads = g.text.num_heads,
    kv_heads = g.text.num_kv_heads, head_dim = g.text.head_dim, mlp = g.text.mlp_dim, eps = 1e-6, offset = 1.0,
    activation = "gelu", scores = function() return { rotation = { theta = 10000.0 } } end,
  }
  text.vocab, text.scale, text.round_logits = rows(HEAD, rows(EMBED, g.vocab)), g.text.width ^ 0.5, false
  text.mask, text.bos, text.eos = given.mask or m.mask or "bidir", 2, 1
  text.max_tokens = read.count(c, "tokenizer_max_length", m.max_tokens)
  text.embed, text.head = { EMBED, HEAD }, { HEAD, EMBED }

  return {
    name  = m.name,
    slots = slots(),
    vision = {
      pictures = given.cameras and "f32" or "u8", -- LeRobot's tower reads what the resize gives, unrounded
      towers = { siglip(g.vision) },
      project = function(b, x) return linear(b, x, P .. "model.multi_modal_projector.linear", g.text.width) end,
    },
    text = text,
    flow = { horizon = horizon, dim = dim, steps = read.steps(c, "num_inference_steps", 10), falls = true },
    prefill = function(b) return b:prompt() end,
    action = m.adaptive and conditioned or mixed,
    ignored = { X .. "lm_head.weight" },
  }
end
