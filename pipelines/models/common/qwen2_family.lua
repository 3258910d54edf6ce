-- Qwen2 and Qwen2.5: the default of a key that config.json lacks is that of Qwen2Config, which is not what
-- any published size has. Stretched rotations (yarn) are refused.
local decoder <const> = include("common/decoder_family.lua")

-- The later layers may see a window.
local function slides(c)
  if not c.use_sliding_window then return function() return false end end
  local from = c.max_window_layers
  if from == nil then from = 28 end
  if math.type(c.sliding_window) ~= "integer" or math.type(from) ~= "integer" or from < 0 then
    error("use_sliding_window needs sliding_window and max_window_layers as whole numbers", 0)
  end
  return function(i) return i >= from end
end

-- m = { name, full, quantization, by_name }, as of decoder_family.lua.
return function(m)
  return decoder {
    name = m.name, full = m.full, quantization = m.quantization, by_name = m.by_name, type = "qwen2",
    qkv_bias = true, kv_heads = 32, vocab = 151936, mlp = 22016, positions = 32768, angles_f32 = true,
    slides = slides,
  }
end
