-- Llama 2 and 3 of any size, SmolLM2 among them; without a checkpoint Llama-3.2-1B.
return include("common/llama_family.lua") {
  name = "llama",
  full = { hidden_size = 2048, intermediate_size = 8192, num_hidden_layers = 16, num_attention_heads = 32,
           num_key_value_heads = 8, head_dim = 64, vocab_size = 128256, rope_theta = 500000.0,
           tie_word_embeddings = true, max_position_embeddings = 131072, rms_norm_eps = 1e-5,
           rope_scaling = { rope_type = "llama3", factor = 32.0, low_freq_factor = 1.0, high_freq_factor = 4.0,
                            original_max_position_embeddings = 8192 } },
}
