-- The geometry of Qwen2.5-14B-Instruct-AWQ, for measurements with random weights: checkpoints are "qwen2".
return include("common/qwen2_family.lua") {
  name = "qwen2_14b_int4", by_name = true,
  full = { hidden_size = 5120, intermediate_size = 13824, num_hidden_layers = 48, num_attention_heads = 40,
           num_key_value_heads = 8, vocab_size = 152064, rope_theta = 1000000.0, tie_word_embeddings = false },
  quantization = { quant_method = "awq", bits = 4, group_size = 128, version = "gemm" },
}
