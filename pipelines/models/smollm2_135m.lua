-- The geometry of SmolLM2-135M, for measurements with random weights: checkpoints are "llama".
return include("common/llama_family.lua") {
  name = "smollm2_135m", by_name = true,
  full = { hidden_size = 576, intermediate_size = 1536, num_hidden_layers = 30, num_attention_heads = 9,
           num_key_value_heads = 3, head_dim = 64, vocab_size = 49152, rope_theta = 100000.0,
           tie_word_embeddings = true, max_position_embeddings = 8192, rms_norm_eps = 1e-5 },
}
