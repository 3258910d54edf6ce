-- Qwen2 and Qwen2.5 of any size; without a checkpoint Qwen2.5-0.5B.
return include("common/qwen2_family.lua") {
  name = "qwen2",
  full = { hidden_size = 896, intermediate_size = 4864, num_hidden_layers = 24, num_attention_heads = 14,
           num_key_value_heads = 2, vocab_size = 151936, rope_theta = 1000000.0, tie_word_embeddings = true },
}
