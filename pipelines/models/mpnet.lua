-- MPNet as a sentence encoder: all-mpnet-base-v2 and its kin. In the model's own code 32 buckets up to a
-- distance of 128 and the padding's id 1, which is not counted among positions, are constants.
local read <const> = include("common/configuration.lua")
return include("common/encoder_family.lua") {
  name = "mpnet", types = { mpnet = true }, prefix = "mpnet", defaults = { vocab = 30527, positions = 512 },
  sizes = {
    full  = { max_position_embeddings = 514, layer_norm_eps = 1e-5 },
    small = { hidden_size = 128, num_hidden_layers = 3, num_attention_heads = 4, intermediate_size = 512 },
    tiny  = { hidden_size = 64, num_hidden_layers = 2, num_attention_heads = 4, intermediate_size = 128,
              vocab_size = 1205, max_position_embeddings = 66 },
  },
  layer = {
    q = "attention.attn.q", k = "attention.attn.k", v = "attention.attn.v", o = "attention.attn.o",
    norm1 = "attention.LayerNorm", up = "intermediate.dense", down = "output.dense", norm2 = "output.LayerNorm",
  },
  sums = function(_, before, positions)
    return { position = { name = before .. "position_embeddings.weight", rows = positions, first = 2, skip = 1 } }
  end,
  relative = function(c, before)
    return { name = before .. "encoder.relative_attention_bias.weight",
             rows = read.count(c, "relative_attention_num_buckets", 32), buckets = 32, distance = 128 }
  end,
}
