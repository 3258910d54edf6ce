-- The geometry of Qwen2.5-7B, for measurements with random weights: checkpoints are "qwen2".
return include("common/qwen2_family.lua") {
  name = "qwen2_7b", by_name = true,
  full = { hidden_size = 3584, intermediate_size = 18944, num_hidden_layers = 28, num_attention_heads = 28,
           num_key_value_heads = 4, vocab_size = 152064, rope_theta = 1000000.0, tie_word_embeddings = false },
}
