-- BERT as a sentence encoder: all-MiniLM-L6-v2, e5, bge, gte, paraphrase-multilingual-MiniLM and their kin.
local read <const> = include("common/configuration.lua")
return include("common/encoder_family.lua") {
  name = "minilm", types = { bert = true }, prefix = "bert", defaults = { vocab = 30522, positions = 512 },
  sizes = {
    full  = { hidden_size = 384, num_hidden_layers = 6, num_attention_heads = 12, intermediate_size = 1536 },
    small = { hidden_size = 128, num_hidden_layers = 3, num_attention_heads = 4, intermediate_size = 512 },
    tiny  = { hidden_size = 64, num_hidden_layers = 2, num_attention_heads = 4, intermediate_size = 128,
              vocab_size = 1200, max_position_embeddings = 64 },
  },
  sums = function(c, before, positions)
    return { position = { name = before .. "position_embeddings.weight", rows = positions, first = 0 },
             types = { name = before .. "token_type_embeddings.weight", rows = read.count(c, "type_vocab_size", 2) } }
  end,
}
