-- Qwen3 of any size; without a checkpoint Qwen3-0.6B.
local read <const> = include("common/configuration.lua")

local function slides(c)
  local some <const>, from <const> = read.flag(c, "use_sliding_window", false), read.number(c, "max_window_layers", 28)
  return function(i) return some and i >= from end
end

return include("common/decoder_family.lua") {
  name = "qwen3", type = "qwen3", head_norms = true, head_dim = 128, kv_heads = 32, vocab = 151936, mlp = 22016,
  positions = 32768, slides = slides,
  full = { hidden_size = 1024, intermediate_size = 3072, num_hidden_layers = 28, num_attention_heads = 16,
           num_key_value_heads = 8, head_dim = 128, vocab_size = 151936, rope_theta = 1000000.0,
           tie_word_embeddings = true, max_position_embeddings = 40960 },
}
