-- DistilBERT as a sentence encoder: multi-qa-distilbert-cos, msmarco-distilbert and their kin. Its config.json has
-- words of its own, and no kinds of tokens.
return include("common/encoder_family.lua") {
  name = "distilbert", types = { distilbert = true }, prefix = "distilbert", eps = 1e-12,
  defaults = { vocab = 30522, positions = 512, layers = 6 },
  keys = { width = "dim", heads = "n_heads", mlp = "hidden_dim", layers = "n_layers", act = "activation" },
  sizes = {
    full  = { dim = 768, n_layers = 6, n_heads = 12, hidden_dim = 3072 },
    small = { dim = 128, n_layers = 3, n_heads = 4, hidden_dim = 512 },
    tiny  = { dim = 64, n_layers = 2, n_heads = 4, hidden_dim = 128, vocab_size = 1200,
              max_position_embeddings = 64 },
  },
  layers = "transformer.layer.",
  layer = {
    q = "attention.q_lin", k = "attention.k_lin", v = "attention.v_lin", o = "attention.out_lin",
    norm1 = "sa_layer_norm", up = "ffn.lin1", down = "ffn.lin2", norm2 = "output_layer_norm",
  },
  sums = function(_, before, positions)
    return { position = { name = before .. "position_embeddings.weight", rows = positions, first = 0 } }
  end,
}
