-- Qwen2 and Qwen2.5: the default of a key that config.json lacks is that of Qwen2Config, which is not what
-- any published size has. Stretched rotations (yarn) are refused.
local read <const> = include("common/configuration.lua")
local decoder <const> = include("common/decoder_family.lua")

-- The later layers may see a window.
local function slides(c)
  if not read.flag(c, "use_sliding_window", false) then return function() return false end end
  local from <const> = read.number(c, "max_window_layers", 28)
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
