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
                                                output_dim = 1024 },
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

-- An object of a configuration, {} where it has none.
local function section(of, key)
  if of[key] ~= nil and (type(of[key]) ~= "table" or #of[key] > 0) then
    read.refuse(of, key, "must be an object, is " .. read.shown(of[key]))
  end
  return table_of(of[key])
end

local head <const>, backbone <const> = section(c, "action_head_cfg"), section(c, "backbone_cfg")
local eagle <const> = section(c, "eagle_config")
if eagle.use_pixel_shuffle ~= nil and type(eagle.use_pixel_shuffle) ~= "boolean" then
  read.refuse(eagle, "use_pixel_shuffle", "must be true or false, is " .. read.shown(eagle.use_pixel_shuffle))
end
local shuffles <const> = eagle.use_pixel_shuffle == true
if shuffles and (eagle.downsample_ratio or 0.5) ~= 0.5 then
  read.refuse(eagle, "downsample_ratio", "must be 0.5, is " .. read.shown(eagle.downsample_ratio))
end
local vision <const>, text <const> = section(eagle, "vision_config"), section(eagle, "text_config")
local blocks <const> = table_of(head.diffusion_model_cfg)
if blocks.norm_type ~= nil and blocks.norm_type ~= "ada_norm" then
  read.refuse(blocks, "norm_type", "must be ada_norm, is " .. read.shown(blocks.norm_type))
end
local vocab <const> = count(text, "vocab_size", 151680)
local image_token <const> = eagle.image_token_index or 151669
if math.type(image_token) ~= "integer" or image_token < 0 or image_token >= vocab then
  read.refuse(eagle, "image_token_index", "must be a token below " .. vocab .. ", is " .. read.shown(image_token))
end

return include("common/groot_family.lua")({
  name = "groot_n15", backbone = "backbone.eagle_model.",
  embodiments = { new_embodiment = 31, oxe_droid = 17, agibot_genie1 = 26, gr1 = 24, so100 = 2, unitree_g1 = 3 },
}, {
  vision = vision, text = text, select = count(backbone, "select_layer", 12),
  image_token = image_token, image_size = count(eagle, "force_image_size", count(vision, "image_size", 224)),
  shuffle = shuffles and 2 or 1, connector = eagle.mlp_connector_layers or 1,
  project = backbone.project_to_dim and count(backbone, "project_to_dim") or nil,
  head = head, horizon = count(c, "action_horizon", 16), future = count(head, "num_target_vision_tokens", 32),
  self = head.vl_self_attention_cfg ~= nil and section(head, "vl_self_attention_cfg") or nil,
})
