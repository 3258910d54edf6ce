-- The geometry of Qwen2.5-1.5B, for measurements with random weights: checkpoints are "qwen2".
return include("common/qwen2_family.lua") {
  name = "qwen2_1b5", by_name = true,
  full = { hidden_size = 1536, intermediate_size = 8960, num_hidden_layers = 28, num_attention_heads = 12,
           num_key_value_heads = 2, vocab_size = 151936, rope_theta = 1000000.0, tie_word_embeddings = true },
}
