-- The text model of Gemma 3 of any size (model_type gemma3_text); without a checkpoint Gemma-3-1B. Five of six
-- layers see a window, and rotate with a base of their own.
local read <const> = include("common/configuration.lua")

local function slides(c)
  local key <const> = c.sliding_window_pattern ~= nil and "sliding_window_pattern" or "_sliding_window_pattern"
  local pattern <const> = read.count(c, key, 6)
  return function(i) return (i + 1) % pattern ~= 0 end
end

-- The base of layers with a window: published files name it, newer ones have it by layer type.
local function attention(c)
  local p <const> = read.part(read.part(c, "rope_parameters"), "sliding_attention")
  return { window_theta = p.rope_theta ~= nil and read.above(p, "rope_theta", 1.0)
             or read.above(c, "rope_local_base_freq", 1.0, 10000.0) }
end

return include("common/gemma_family.lua") {
  name = "gemma3", type = "gemma3_text", vocab = 262208, positions = 131072, theta = 1000000.0,
  head_norms = true, stretches = { linear = true }, slides = slides, attention = attention,
  full = { hidden_size = 1152, intermediate_size = 6912, num_hidden_layers = 26, num_attention_heads = 4,
           num_key_value_heads = 1, head_dim = 256, vocab_size = 262144, rope_theta = 1000000.0,
           query_pre_attn_scalar = 256, max_position_embeddings = 32768, sliding_window = 512 },
}
