-- GR00T N1.7 of NVIDIA: its network. A Qwen3-VL reads pictures and text; layers of the action head cross to the
-- pictures or to the rest. A folder's processor says what stands around it.
-- `given` = { config, folders, cameras, slots, picture_sizes, shapes, dtypes, size, arch, embodiment, width, horizon }
local read <const> = include("common/configuration.lua")
local count <const> = read.count
local pictures_of <const> = include("common/qwen3_vl.lua")

local function table_of(x) return type(x) == "table" and x or {} end

-- nvidia/Cosmos-Reason2-2B, whose sizes no file of a checkpoint has.
local cosmos <const> = {
  image_token_id = 151655,
  vision_config = { hidden_size = 1024, intermediate_size = 4096, depth = 24, num_heads = 16, patch_size = 16,
                    num_position_embeddings = 2304, out_hidden_size = 2048, deepstack_visual_indexes = { 5, 11, 17 } },
  text_config = { hidden_size = 2048, intermediate_size = 6144, num_hidden_layers = 28, num_attention_heads = 16,
                  num_key_value_heads = 8, head_dim = 128, vocab_size = 151936, rope_theta = 5000000.0,
                  rope_scaling = { rope_type = "default", mrope_interleaved = true, mrope_section = { 24, 20, 20 } } },
}
local PUBLISHED <const> = "nvidia/GR00T-N1.7-3B" -- of whose sizes `defaults` are
local COSMOS <const> = "nvidia/Cosmos-Reason2-2B"

-- Sizes without a checkpoint: as published; small for tests on a CPU; tiny as in the cases of tests/fixtures.
local sizes <const> = {
  full = { model_name = COSMOS },
  small = {
    action_horizon = 16, max_state_dim = 64, max_action_dim = 32, select_layer = 6, input_embedding_dim = 256,
    hidden_size = 128,
    diffusion_model_cfg = { num_layers = 8, num_attention_heads = 8, attention_head_dim = 32, output_dim = 128 },
    vl_self_attention_cfg = { num_layers = 2, num_attention_heads = 8, attention_head_dim = 32 },
    vlm = { image_token_id = 4090,
      vision_config = { hidden_size = 192, intermediate_size = 512, depth = 4, num_heads = 4, patch_size = 16,
                        num_position_embeddings = 64, out_hidden_size = 256, deepstack_visual_indexes = { 1, 2 } },
      text_config = { hidden_size = 256, intermediate_size = 704, num_attention_heads = 8, num_key_value_heads = 2,
                      head_dim = 32, vocab_size = 4096, rope_theta = 5000000.0,
                      rope_scaling = { mrope_section = { 6, 5, 5 } } } } },
  tiny = {
    action_horizon = 7, max_state_dim = 21, max_action_dim = 8, select_layer = 4, input_embedding_dim = 24,
    hidden_size = 18, max_seq_len = 64, image_side = 32,
    diffusion_model_cfg = { num_layers = 6, num_attention_heads = 3, attention_head_dim = 8, output_dim = 18 },
    vl_self_attention_cfg = { num_layers = 2, num_attention_heads = 2, attention_head_dim = 16 },
    vlm = { image_token_id = 77,
      vision_config = { hidden_size = 24, intermediate_size = 40, depth = 3, num_heads = 2, patch_size = 4,
                        num_position_embeddings = 25, out_hidden_size = 32, deepstack_visual_indexes = { 0, 2 } },
      text_config = { hidden_size = 32, intermediate_size = 48, num_attention_heads = 4, num_key_value_heads = 2,
                      head_dim = 12, vocab_size = 256, rope_theta = 5000000.0,
                      rope_scaling = { mrope_section = { 2, 2, 2 } } } } },
}

-- What LeRobot's and NVIDIA's code take where config.json is silent.
local defaults <const> = {
  backbone_embedding_dim = 2048, action_horizon = 40, max_state_dim = 132, max_action_dim = 132, select_layer = 16,
  diffusion_model_cfg = { num_layers = 32, num_attention_heads = 32, attention_head_dim = 48, output_dim = 1024,
                          interleave_self_attention = true },
  vl_self_attention_cfg = { num_layers = 4, num_attention_heads = 32, attention_head_dim = 64 },
}

-- LeRobot's folders have no sizes: base_model_path names the folder that has them. What LeRobot says beside wins.
local c = given.config
local policy <const> = c and c.type == "groot" and c or nil
local base <const> = policy and (policy.base_model_path or PUBLISHED)
local mine = table_of(given.shapes)["backbone.model.model.visual.patch_embed.proj.weight"]
if not given.shapes then mine = given.arch == "groot_n17" end
if policy and not mine then
  return false
elseif policy and type(base) ~= "string" then
  read.refuse(policy, "base_model_path", "must be a name, is " .. read.shown(base))
elseif policy and not table_of(given.folders).base then
  return { folders = { base = base } }
elseif policy then
  c = {}
  local found = given.folders.base
  if found.missing then -- of a model whose weights are made up
    found = base == PUBLISHED and { config = { model_type = "Gr00tN1d7" } } or error(found.missing, 0)
  end
  for key, value in pairs(table_of(found.config)) do c[key] = value end
  if c.model_type ~= "Gr00tN1d7" or c.type ~= nil then
    read.refuse(policy, "base_model_path", base .. " must be a Gr00tN1d7, is " .. tostring(c.type or c.model_type))
  end
  for _, name in ipairs { "max_state_dim", "max_action_dim" } do
    if (policy[name] or 132) ~= (c[name] or 132) then
      error("config.json: " .. name .. ": is " .. tostring(policy[name] or 132) .. ", but that of " .. base .. " is "
            .. tostring(c[name] or 132), 0)
    end
  end
  if policy.num_inference_timesteps ~= nil then c.num_inference_timesteps = policy.num_inference_timesteps end
elseif c and c.model_type ~= "Gr00tN1d7" or given.shapes and not c then
  return false
elseif not c then
  if given.arch ~= "groot_n17" then return false end
  c = sizes[given.size] or error("size must be full, small or tiny", 0)
end

-- The configuration of the vision-language model: a folder of its name, unless it is the published one.
local name <const> = c.model_name == nil and COSMOS or c.model_name
if type(name) ~= "string" then read.refuse(c, "model_name", "must be a name, is " .. read.shown(name)) end
local vlm = c.vlm
if given.config then vlm = name ~= COSMOS and table_of(given.folders).vlm or nil end
if given.config and name ~= COSMOS and not vlm then return { folders = { base = policy and base, vlm = name } } end
if vlm and vlm.missing then error(vlm.missing, 0) end
vlm = given.config and vlm and table_of(vlm.config) or vlm or cosmos
if vlm.model_type ~= nil and vlm.model_type ~= "qwen3_vl" then
  read.refuse(c, "model_name", name .. " must be a qwen3_vl, is " .. tostring(vlm.model_type))
end

local head <const> = {}
for key, value in pairs(defaults) do head[key] = value end
for key, value in pairs(c) do head[key] = value end
read.only(head, "state_history_length", 1)
read.only(head, "reproject_vision", false)
read.word(head, "backbone_model_type", { "qwen" }, "qwen")
local alternates <const> = read.flag(head, "use_alternate_vl_dit", true)

-- Newer files have the rotation in rope_parameters, older ones beside rope_theta.
local text <const>, vision <const> = read.part(vlm, "text_config"), read.part(vlm, "vision_config")
local own <const> = {}
for key, value in pairs(text) do own[key] = value end
local turns <const> = read.part(text, text.rope_parameters ~= nil and "rope_parameters" or "rope_scaling")
own.rope_theta, own.rope_scaling = text.rope_theta or turns.rope_theta or 5000000.0, turns
own.head_dim = count(text, "head_dim", 128)
if not read.flag(turns, "mrope_interleaved", true) then read.refuse(turns, "mrope_interleaved", "must be true") end
local sections <const> = turns.mrope_section == nil and { 24, 20, 20 } or turns.mrope_section
for i = 1, 3 do
  if type(sections) ~= "table" or #sections ~= 3 or math.type(sections[i]) ~= "integer" then
    read.refuse(turns, "mrope_section", "must be three whole numbers")
  end
end
local pairs_of <const> = sections[1] + sections[2] + sections[3]
if pairs_of * 2 ~= own.head_dim then
  read.refuse(turns, "mrope_section", "sections of " .. pairs_of .. " pairs; a head of " .. own.head_dim .. " has "
              .. own.head_dim // 2)
end

local vocab <const>, token <const> = count(text, "vocab_size", 151936), vlm.image_token_id or 151655
if math.type(token) ~= "integer" or token < 0 or token >= vocab then
  read.refuse(vlm, "image_token_id", "must be a token below " .. vocab .. ", is " .. read.shown(token))
end
own.vocab_size = vocab

local B <const> = "backbone.model."
local V <const> = B .. "model.visual."
local width <const> = count(own, "hidden_size", 2048)
local largest, given_sizes = count(c, "image_side", 256), given.picture_sizes
if given_sizes then
  largest = 0
  for _, size in ipairs(given_sizes) do largest = math.max(largest, size[1], size[2]) end
end
local itself <const> = read.part(head, "vl_self_attention_cfg")

return include("common/groot_family.lua")({
  name = "groot_n17", unnormed = true, -- its layers behind the text run without vlln, too
  backbone = B, text = B .. "model.language_model.", head = B .. "lm_head.weight",
  ignored = { B .. "lm_head.weight", B .. "model.language_model.norm.weight" },
  embodiments = { oxe_droid_relative_eef_relative_joint = 24, xdof_relative_eef_relative_joint = 27,
                  xdof_relative_eef_relative_joint_subtask = 27, real_g1_relative_eef_relative_joints = 25,
                  real_r1_pro_sharpa_relative_eef = 26, real_r1_pro_sharpa_relative_eef_human = 26,
                  real_r1_pro_sharpa_relative_eef_maxinsights = 26, real_r1_pro_sharpa_relative_eef_mecka = 26,
                  unitree_g1_full_body_with_waist_height_nav_cmd = 25, simpler_env_google = 0, simpler_env_widowx = 1,
                  libero_sim = 2, new_embodiment = 10 },
}, {
  pictures = pictures_of(V, vision, { image_size = largest, sizes = given_sizes, width = width,
    -- A tower that is stored in float32 stays so: its rounding is most of what a bf16 plan loses.
    f32 = table_of(given.dtypes)[V .. "merger.norm.weight"] == "F32" }),
  text = own, select = count(head, "select_layer", 16), image_token = token, sections = sections, raw = true,
  head = head, horizon = count(head, "action_horizon", 40), self = (itself.num_layers or 0) ~= 0 and itself or nil,
  split = alternates and count(head, "attend_text_every_n_blocks", 2) or nil,
})
