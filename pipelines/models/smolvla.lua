-- SmolVLA as LeRobot saves it: a SmolVLM2 whose first layers give keys and values, and an expert beside it
-- whose layers see them together with their own rows, or cross to projections of them alone.
-- `given` = { config, folders, cameras, shapes, dtypes, size, arch, width, horizon }: config.json of the policy; by
-- folders.vlm the files of the model that vlm_model_name names, whose sizes the policy's own do not repeat.
local read <const> = include("common/configuration.lua")
local shared <const> = include("common/smolvlm_tower.lua")
local count <const>, number <const> = read.count, read.number

local layers_of <const> = include("common/decoder_layers.lua")
local expert_of <const> = include("common/expert_layers.lua")

local M <const> = "vlm_with_expert.vlm.model."
local X <const> = "vlm_with_expert.lm_expert."

-- The model whose sizes are known: common/smolvlm_tower.lua has them.
local PUBLISHED <const> = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"

-- Sizes without a checkpoint, of the policy; common/smolvlm_tower.lua has the model's. A key that neither has is
-- LeRobot's default.
local sizes <const> = {
  full = { num_vlm_layers = 16, resize_imgs_with_padding = { 512, 512 } },
  small = { num_vlm_layers = 6, resize_imgs_with_padding = { 128, 128 } },
  tiny = { num_vlm_layers = 4, resize_imgs_with_padding = { 32, 32 } },
}

-- A whole number that may be negative: LeRobot's "all of them", or "never".
local function any(t, key, default)
  local n = read.integral(t[key])
  if n == nil then n = default end
  if math.type(n) ~= "integer" then read.refuse(t, key, "must be a whole number, is " .. read.shown(n)) end
  return n
end

-- Sizes of the text, and of whatever has its heads: the expert is made of the text's configuration, biases and all.
local function sizes_of(t)
  read.word(t, "hidden_act", { "silu" }, "silu")
  read.only(t, "attention_bias", false)
  read.only(t, "mlp_bias", false)
  local heads, width = count(t, "num_attention_heads", 32), count(t, "hidden_size", 4096)
  return { width = width, heads = heads, kv_heads = count(t, "num_key_value_heads", heads),
           head_dim = count(t, "head_dim", width // heads), mlp = count(t, "intermediate_size", 11008),
           eps = number(t, "rms_norm_eps", 1e-6), activation = "silu" }
end

-- A policy that was not trained from the model's published weights keeps its tower in float32 beside a text in
-- bfloat16.
local function mixed()
  local of <const> = given.dtypes or {}
  return of[M .. "vision_model.post_layernorm.weight"] == "F32" and of[M .. "text_model.norm.weight"] == "BF16"
end

-- The side of the pictures: (width, height), which must be equal, as the connector joins squares of patches.
local function picture_side(c)
  local size = c.resize_imgs_with_padding
  if size == nil then size = { 512, 512 } end
  if type(size) ~= "table" or size[1] ~= size[2] or math.type(read.integral(size[1])) ~= "integer" then
    read.refuse(c, "resize_imgs_with_padding", "must be two equal numbers: other pictures are not supported")
  end
  return count(size, 1)
end

-- Which layers of the expert cross, and how many layers of the text lie between two that it reads.
local function expert_layers(c, layers)
  local n, every = any(c, "num_expert_layers", -1), any(c, "self_attn_every_n_layers", 2)
  if n <= 0 then n = layers end
  if layers % n ~= 0 then
    read.refuse(c, "num_expert_layers", n .. " do not divide the " .. layers .. " of the text")
  end
  local apart <const>, mode <const> = layers // n, c.attention_mode or "cross_attn"
  if mode ~= "cross_attn" and mode ~= "self_attn" then
    read.refuse(c, "attention_mode", "must be cross_attn or self_attn, is " .. read.shown(mode))
  end
  local function crosses(l) return mode == "cross_attn" and not (every > 0 and l % every == 0) end
  local list = {}
  for i = 0, n - 1 do
    list[i + 1] = crosses(i * apart)
    if list[i + 1] ~= crosses(i) then
      read.refuse(c, "self_attn_every_n_layers", every .. " means one kind for layer " .. i .. " of the expert and "
                  .. "another for layer " .. i * apart .. " of the text")
    end
  end
  return n, apart, list
end

-- Tokens around each picture, by their names in the tokenizer.
local function around(c, vlm)
  if not c.add_image_special_tokens then return nil end
  local names, ids = vlm.tokenizer_config or {}, vlm.tokens or {}
  local function id(key, default)
    local name = names[key] or default
    return ids[name] or error("add_image_special_tokens: the tokenizer has no token " .. tostring(name), 0)
  end
  local fake = id("fake_image_token", "<fake_token_around_image>")
  return { before = { fake, id("global_image_token", "<global-img>") }, behind = { fake },
           blanks = any(c, "empty_cameras", 0) }
end

-- A product with a bias.
local function linear(g, x, name, out, tap)
  return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out, name = tap })
end

local c, vlm = given.config, given.folders and given.folders.vlm
if c and c.type ~= "smolvla" or given.shapes and not c then return false end
local named <const> = c and c.vlm_model_name or PUBLISHED
if type(named) ~= "string" and c or named == "" then
  read.refuse(c, "vlm_model_name", "must be a name, is " .. read.shown(named))
end
if c and not vlm then return { folders = { vlm = named } } end
if vlm and vlm.missing then -- of a model whose weights are made up
  vlm = named == PUBLISHED and { config = shared.sizes.full } or error(vlm.missing, 0)
end
if not c then
  if given.arch ~= "smolvla" then return false end
  local size = sizes[given.size] or error("size must be full, small or tiny", 0)
  c, vlm = size, { config = shared.sizes[given.size] }
  c.max_action_dim, c.max_state_dim = given.width, given.width
end
if c.use_delta_joint_actions_aloha then read.refuse(c, "use_delta_joint_actions_aloha", "is not supported") end

local text <const>, vision <const> = vlm.config.text_config or {}, vlm.config.vision_config or {}
local all <const> = count(text, "num_hidden_layers", 32)
local used = any(c, "num_vlm_layers", 16)
used = used > 0 and math.min(used, all) or all
local n_expert <const>, apart <const>, crossed <const> = expert_layers(c, used)
local hidden <const> = count(text, "hidden_size", 4096)
local width <const> = math.floor(hidden * number(c, "expert_width_multiplier", 0.75))
if width < 4 or width > 1 << 20 or width % 2 ~= 0 then
  read.refuse(c, "expert_width_multiplier", "makes an expert of " .. width .. " columns of a text of " .. hidden
              .. "; it must be an even number, 4 .. 2^20")
end
local horizon <const> = given.config and count(c, "chunk_size", 50) or given.horizon or 50
local dim <const> = count(c, "max_action_dim", 32)

-- The expert's layers, of the text's shape. None of its rows sees a later one.
local shape <const> = sizes_of(text)
shape.prefix, shape.layers, shape.width = X, n_expert, width
shape.mlp = 256 * math.ceil(4 * (2 * width // 3) / 256)
shape.reads = function(i) return { layer = i * apart, projected = crossed[i + 1], lead = horizon } end
local expert <const> = expert_of(shape)

-- The prompt, behind it a row of the robot's state.
local function prefill(g)
  local state = g:state { entries = count(c, "max_state_dim", 32) }
  return g:prompt { behind = linear(g, state, "state_proj", hidden, "state_in") }
end

-- The noisy actions with the time beside them, through the expert.
local function action(g, prompt, x, t)
  local shortest <const>, longest <const> = read.periods(c)
  local time = g:waves(t, { cols = width, shortest = shortest, longest = longest })
  local y = linear(g, x, "action_in_proj", width, "action_in")
  y = linear(g, g:beside(y, time), "action_time_mlp_in", width, "time_in")
  y = linear(g, g:activation(y, { kind = "silu" }), "action_time_mlp_out", width, "embeds")
  return linear(g, expert(g, y, prompt), "action_out_proj", dim, "action_out")
end

local of_text <const> = sizes_of(text)
of_text.prefix, of_text.layers = M .. "text_model.", used
of_text.scores = function() return { rotation = { theta = 10000.0 } } end
local layers <const> = layers_of(of_text)
layers.vocab, layers.scale, layers.round_logits = count(text, "vocab_size", 32000), hidden ^ 0.5, false
layers.mask = "bidir"
layers.keys_f32 = true -- some hundred rows: what bfloat16 would save is not worth what it costs
layers.bos, layers.eos, layers.max_tokens = -1, -1, count(c, "tokenizer_max_length", 48)
layers.embed, layers.head = { M .. "text_model.embed_tokens.weight" }, {}

return {
  name = "smolvla",
  slots = given.cameras or given.slots or
    { "observation.images.camera1", "observation.images.camera2", "observation.images.camera3" },
  vision = {
    pictures = "f32", towers = { shared.tower(M, vision, picture_side(c), mixed()) },
    project = shared.project(M, count(vlm.config, "scale_factor", 2), hidden, hidden ^ 0.5), around = around(c, vlm),
  },
  text = layers,
  flow = { horizon = horizon, dim = dim, steps = read.steps(c, "num_steps", 10), falls = true, f32 = true },
  prefill = prefill,
  action = action,
  ignored = { "vlm_with_expert.vlm.lm_head.weight" },
}
