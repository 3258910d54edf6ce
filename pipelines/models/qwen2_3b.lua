-- The geometry of Qwen2.5-3B, for measurements with random weights: checkpoints are "qwen2".
return include("common/qwen2_family.lua") {
  name = "qwen2_3b", by_name = true,
  full = { hidden_size = 2048, intermediate_size = 11008, num_hidden_layers = 36, num_attention_heads = 16,
           num_key_value_heads = 2, vocab_size = 151936, rope_theta = 1000000.0, tie_word_embeddings = true },
}
