-- What models have in common that look with SmolVLM2's eyes: its picture tower, from vision_config, and sizes
-- without a checkpoint. A key that the configuration lacks has the default of the Hugging Face class.
local read <const> = include("common/configuration.lua")
local count <const> = read.count
local pictures_of <const> = include("common/picture_layers.lua")

local shared <const> = {}

-- SmolVLM2-500M; small for tests on a CPU; tiny as in the golden cases.
shared.sizes = {
  full = { scale_factor = 4, vocab_size = 49280,
    vision_config = { hidden_size = 768, intermediate_size = 3072, num_hidden_layers = 12, num_attention_heads = 12,
                      patch_size = 16, image_size = 512 },
    text_config = { hidden_size = 960, intermediate_size = 2560, num_hidden_layers = 32, num_attention_heads = 15,
                    num_key_value_heads = 5, head_dim = 64, rms_norm_eps = 1e-5, vocab_size = 49280 } },
  small = { scale_factor = 4,
    vision_config = { hidden_size = 192, intermediate_size = 512, num_hidden_layers = 4, num_attention_heads = 4,
                      patch_size = 16, image_size = 128 },
    text_config = { hidden_size = 256, intermediate_size = 704, num_hidden_layers = 6, num_attention_heads = 8,
                    num_key_value_heads = 2, head_dim = 32, rms_norm_eps = 1e-5, vocab_size = 4096 } },
  tiny = { scale_factor = 4,
    vision_config = { hidden_size = 48, intermediate_size = 96, num_hidden_layers = 3, num_attention_heads = 4,
                      patch_size = 4, image_size = 32 },
    text_config = { hidden_size = 72, intermediate_size = 112, num_hidden_layers = 5, num_attention_heads = 6,
                    num_key_value_heads = 2, head_dim = 12, rms_norm_eps = 1e-5, vocab_size = 420 } },
}

-- From squares of patches to rows of the text, `times` what they are.
function shared.project(prefix, side, width, times)
  return function(g, x)
    if side > 1 then x = g:squares(x, { side = side }) end
    return g:linear(x, { weight = prefix .. "connector.modality_projection.proj.weight", out = width, times = times })
  end
end

-- The tower of pictures of side x side, with tensors below `prefix`. f32: it stays as it is stored beside a text
-- that is not.
function shared.tower(prefix, c, side, f32)
  local V <const> = prefix .. "vision_model."
  local width, heads = count(c, "hidden_size", 1152), count(c, "num_attention_heads", 16)
  if width % heads ~= 0 then read.refuse(c, "num_attention_heads", heads .. " do not divide " .. width) end
  read.word(c, "hidden_act", { "gelu_pytorch_tanh" }, "gelu_pytorch_tanh")
  if count(c, "num_channels", 3) ~= 3 then
    read.refuse(c, "num_channels", "must be 3, is " .. read.shown(c.num_channels))
  end
  local patch = count(c, "patch_size", 32)
  local t = pictures_of {
    prefix = V .. "encoder.layers.", layers = count(c, "num_hidden_layers", 12), width = width, heads = heads,
    mlp = count(c, "intermediate_size", 3072), eps = read.above(c, "layer_norm_eps", 0.0, 1e-6),
    final = V .. "post_layernorm", f32 = f32,
    image_size = side, patch = patch, side = count(c, "image_size", 224) // patch,
    embed = V .. "embeddings.patch_embedding", position = V .. "embeddings.position_embedding.weight",
  }
  t.mean, t.std = { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 }
  return t
end

return shared
