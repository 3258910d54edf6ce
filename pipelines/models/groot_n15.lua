-- GR00T N1.5 of NVIDIA, from its folder or from one that LeRobot wrote. Sizes of the vision-language model are those
-- of the released file where the folder does not say them.
local read <const> = include("common/configuration.lua")
local count <const> = read.count

local function table_of(x) return type(x) == "table" and x or {} end

-- Sizes without a checkpoint: as released; small for tests on a CPU; tiny as in the golden cases.
local sizes <const> = {
  full = {
    backbone_cfg = { select_layer = 12 }, action_horizon = 16,
    action_head_cfg = { diffusion_model_cfg = { num_layers = 16, num_attention_heads = 32, attention_head_dim = 48,
                                                output_dim = 1024, interleave_self_attention = true },
                        vl_self_attention_cfg = { num_layers = 4, num_attention_heads = 32,
                                                  attention_head_dim = 64 } } },
  small = {
    backbone_cfg = { select_layer = 6 }, action_horizon = 16,
    action_head_cfg = { input_embedding_dim = 256, hidden_size = 128, num_target_vision_tokens = 32,
                        diffusion_model_cfg = { num_layers = 6, num_attention_heads = 8, attention_head_dim = 32,
                                                output_dim = 128 },
                        vl_self_attention_cfg = { num_layers = 2, num_attention_heads = 4,
                                                  attention_head_dim = 64 } },
    eagle_config = { force_image_size = 224, image_token_index = 4090,
      vision_config = { hidden_size = 192, intermediate_size = 512, num_hidden_layers = 4, num_attention_heads = 4,
                        patch_size = 28 },
      text_config = { hidden_size = 256, intermediate_size = 704, num_attention_heads = 8, num_key_value_heads = 2,
                      head_dim = 32, vocab_size = 4096 } } },
  tiny = {
    backbone_cfg = { select_layer = 3 }, action_horizon = 6,
    action_head_cfg = { input_embedding_dim = 24, hidden_size = 20, num_target_vision_tokens = 4, max_seq_len = 64,
                        diffusion_model_cfg = { num_layers = 4, num_attention_heads = 3, attention_head_dim = 8,
                                                output_dim = 20 },
                        vl_self_attention_cfg = { num_layers = 2, num_attention_heads = 2,
                                                  attention_head_dim = 16 } },
    eagle_config = { force_image_size = 28, image_token_index = 113,
      vision_config = { hidden_size = 24, intermediate_size = 44, num_hidden_layers = 2, num_attention_heads = 2,
                        patch_size = 7 },
      text_config = { hidden_size = 32, intermediate_size = 52, num_attention_heads = 4, num_key_value_heads = 2,
                      head_dim = 12, vocab_size = 256 } } },
}

-- LeRobot's folders have the sizes in `geometry`, or not at all. Its later ones of the same type are GR00T N1.7, by the
-- names of their tensors; without tensors the asker knows.
local c = given.config
local later = table_of(given.shapes)["backbone.model.model.visual.patch_embed.proj.weight"]
if not given.shapes then later = given.arch ~= "groot_n15" end
if c and c.type == "groot" and later then
  return false
elseif c and c.type == "groot" then
  if c.geometry ~= nil and type(c.geometry) ~= "table" then read.refuse(c, "geometry", "must be an object") end
  c = c.geometry or sizes.full
elseif c and c.model_type ~= "gr00t_n1_5" or given.shapes and not c then
  return false
elseif not c then
  if given.arch ~= "groot_n15" then return false end
  c = sizes[given.size] or error("size must be full, small or tiny", 0)
end

local head <const>, backbone <const> = read.part(c, "action_head_cfg"), read.part(c, "backbone_cfg")
local eagle <const> = read.part(c, "eagle_config")
local shuffles <const> = read.flag(eagle, "use_pixel_shuffle", false)
if shuffles then read.only(eagle, "downsample_ratio", 0.5) end
local vision <const>, text <const> = read.part(eagle, "vision_config"), read.part(eagle, "text_config")
read.word(vision, "model_type", { "siglip_vision_model" }, "siglip_vision_model")
read.word(text, "model_type", { "qwen3" }, "qwen3")
for _, field in ipairs { { "select_layer", -1 }, { "use_backbone_lora", 0 }, { "use_llm_lora", 0 } } do
  read.only(eagle, field[1], field[2])
end
read.only(backbone, "reproject_vision", false)
local vocab <const> = count(text, "vocab_size", 151680)
local image_token <const> = eagle.image_token_index or 151669
if math.type(image_token) ~= "integer" or image_token < 0 or image_token >= vocab then
  read.refuse(eagle, "image_token_index", "must be a token below " .. vocab .. ", is " .. read.shown(image_token))
end

-- The side of pictures stands twice, and what the action head makes stands beside it, too.
local side <const> = count(eagle, "force_image_size", count(vision, "image_size", 224))
if count(vision, "image_size", side) ~= side then
  read.refuse(vision, "image_size", vision.image_size .. " is not force_image_size " .. side)
end
local dim <const> = count(head, "action_dim", count(head, "max_action_dim", 32))
local horizon <const> = count(head, "action_horizon", count(c, "action_horizon", 16))
for _, field in ipairs { { "action_dim", dim }, { "action_horizon", horizon } } do
  local name <const>, of <const> = field[1], field[2]
  if count(c, name, of) ~= of then read.refuse(c, name, c[name] .. " is not that of action_head_cfg, " .. of) end
end
if count(head, "max_action_dim", dim) ~= dim then
  read.refuse(head, "max_action_dim", head.max_action_dim .. " is not action_dim " .. dim)
end

return include("common/groot_family.lua")({
  name = "groot_n15", backbone = "backbone.eagle_model.",
  embodiments = { new_embodiment = 31, oxe_droid = 17, agibot_genie1 = 26, gr1 = 24, so100 = 2, unitree_g1 = 3 },
}, {
  vision = vision, text = text, select = count(backbone, "select_layer", 12),
  image_token = image_token, image_size = side,
  shuffle = shuffles and 2 or 1, connector = count(eagle, "mlp_connector_layers", 1, 2),
  project = backbone.project_to_dim and count(backbone, "project_to_dim") or nil,
  head = head, horizon = horizon, dim = dim, future = count(head, "num_target_vision_tokens", 32),
  self = head.vl_self_attention_cfg ~= nil and read.part(head, "vl_self_attention_cfg") or nil,
})
