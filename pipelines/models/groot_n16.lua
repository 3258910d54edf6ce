-- GR00T N1.6 of NVIDIA: its network. Pictures of several sizes in a tower that reads patches by a matrix, every other
-- layer of the action head crosses to the pictures or to the rest. A folder's processor says what stands around it.
local read <const> = include("common/configuration.lua")
local count <const> = read.count

local function table_of(x) return type(x) == "table" and x or {} end

-- Sizes without a checkpoint: as published; small for tests on a CPU; tiny as in the golden cases.
local sizes <const> = {
  full = {
    action_horizon = 50, max_state_dim = 128, max_action_dim = 128, select_layer = 16,
    diffusion_model_cfg = { num_layers = 32, num_attention_heads = 32, attention_head_dim = 48, output_dim = 1024 } },
  small = {
    action_horizon = 16, max_state_dim = 64, max_action_dim = 32, select_layer = 6, input_embedding_dim = 256,
    hidden_size = 128,
    diffusion_model_cfg = { num_layers = 8, num_attention_heads = 8, attention_head_dim = 32, output_dim = 128 },
    eagle_config = { image_token_index = 4090,
      vision_config = { hidden_size = 192, intermediate_size = 512, num_hidden_layers = 4, num_attention_heads = 4,
                        patch_size = 14, num_patches = 256 },
      text_config = { hidden_size = 256, intermediate_size = 704, num_attention_heads = 8, num_key_value_heads = 2,
                      head_dim = 32, vocab_size = 4096 } } },
  tiny = {
    action_horizon = 7, max_state_dim = 21, max_action_dim = 8, select_layer = 3, input_embedding_dim = 24,
    hidden_size = 18, max_seq_len = 64,
    diffusion_model_cfg = { num_layers = 6, num_attention_heads = 3, attention_head_dim = 8, output_dim = 18 },
    eagle_config = { image_token_index = 113,
      vision_config = { hidden_size = 24, intermediate_size = 40, num_hidden_layers = 2, num_attention_heads = 2,
                        patch_size = 7, num_patches = 16 },
      text_config = { hidden_size = 32, intermediate_size = 48, num_attention_heads = 4, num_key_value_heads = 2,
                      head_dim = 12, vocab_size = 256 } } },
}

local c = given.config
if c and c.model_type ~= "Gr00tN1d6" or given.shapes and not c then
  return false
elseif not c then
  if given.arch ~= "groot_n16" then return false end
  c = sizes[given.size] or error("size must be full, small or tiny", 0)
end

local eagle <const> = read.part(c, "eagle_config")
local vision <const>, text <const> = read.part(eagle, "vision_config"), read.part(eagle, "text_config")
for _, field in ipairs { { vision, "use_windows_attn" }, { vision, "use_rope" }, { c, "reproject_vision" } } do
  read.only(field[1], field[2], false)
end
if not read.flag(eagle, "use_pixel_shuffle", true) then read.refuse(eagle, "use_pixel_shuffle", "must be true") end
for _, field in ipairs { { "downsample_ratio", 0.5 }, { "mlp_connector_layers", 2 }, { "select_layer", -1 },
                         { "use_backbone_lora", 0 }, { "use_llm_lora", 0 } } do
  read.only(eagle, field[1], field[2])
end
read.word(vision, "model_type", { "siglip2_vision_model" }, "siglip2_vision_model")
read.word(text, "model_type", { "qwen3" }, "qwen3")
read.word(c, "backbone_model_type", { "eagle" }, "eagle")
read.word(c, "model_name", { "nvidia/Eagle-Block2A-2B-v2" }, "nvidia/Eagle-Block2A-2B-v2")
local vocab <const> = count(text, "vocab_size", 151680)
local image_token <const> = eagle.image_token_index or 151669
if math.type(image_token) ~= "integer" or image_token < 0 or image_token >= vocab then
  read.refuse(eagle, "image_token_index", "must be a token below " .. vocab .. ", is " .. read.shown(image_token))
end

-- The side of the table of positions.
local patches <const>, patch <const> = count(vision, "num_patches", 256), count(vision, "patch_size", 14)
local side = 1
while side * side < patches do side = side + 1 end
if side * side ~= patches then read.refuse(vision, "num_patches", "must be a square, is " .. patches) end

-- The side of a picture: the edge that the processor cuts at, 256 in the published code, as the nearest number of
-- pairs of patches, the even one of two. It is 252. Without a processor an eighth more patches than the table has.
local function even(x)
  local below <const> = x // 1
  local rest <const> = x - below
  return (rest > 0.5 or rest == 0.5 and below % 2 == 1) and below + 1 or below
end
local processor <const> = table_of(table_of(given.processor).processor_kwargs)
local target <const>, edge <const> = table_of(processor.image_target_size), processor.shortest_image_edge
local largest, given_sizes = (side + side // 8) // 2 * 2 * patch, given.picture_sizes
if given_sizes then
  largest = 0
  for _, size in ipairs(given_sizes) do largest = math.max(largest, size[1], size[2]) end
elseif math.type(edge or target[1]) == "integer" then
  local pair <const> = 2 * patch
  largest = math.max(1, math.tointeger(even((edge or target[1]) / pair))) * pair
end

return include("common/groot_family.lua")({
  name = "groot_n16", backbone = "backbone.model.",
  -- mask_token stands for states that training drops.
  ignored = { "backbone.model.vision_model.vision_model.head.*", "backbone.model.language_model.lm_head.weight",
              "action_head.mask_token" },
  embodiments = { gr1 = 20, oxe_droid = 16, new_embodiment = 10, robocasa_panda_omron = 13, behavior_r1_pro = 24,
                  unitree_g1 = 8, libero_panda = 2, oxe_google = 0, oxe_widowx = 1 },
}, {
  vision = vision, text = text, select = count(c, "select_layer", 16), image_token = image_token,
  image_size = largest, sizes = given_sizes,
  tower = { matrix = true, smooth = true, side = side },
  shuffle = 2, planes = true, connector = 2,
  head = c, horizon = count(c, "action_horizon", 50),
  split = read.flag(c, "use_alternate_vl_dit", true) and count(c, "attend_text_every_n_blocks", 2) or nil,
})
