-- Gemma 2 of any size; without a checkpoint Gemma-2-2B. Scores and logits are capped, every other layer from
-- the first on sees a window.
local read <const> = include("common/configuration.lua")

local caps <const> = { attn_logit_softcapping = 50.0, final_logit_softcapping = 30.0 }

return include("common/gemma_family.lua") {
  name = "gemma2", type = "gemma2", vocab = 256000, positions = 8192,
  attention = function(c) return { cap = read.cap(c, "attn_logit_softcapping") } end,
  slides = function() return function(i) return i % 2 == 0 end end,
  full = { hidden_size = 2304, intermediate_size = 9216, num_hidden_layers = 26, num_attention_heads = 8,
           num_key_value_heads = 4, head_dim = 256, vocab_size = 256000, rope_theta = 10000.0,
           query_pre_attn_scalar = 256, max_position_embeddings = 8192, sliding_window = 4096,
           attn_logit_softcapping = caps.attn_logit_softcapping,
           final_logit_softcapping = caps.final_logit_softcapping },
}
