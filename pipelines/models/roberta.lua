-- RoBERTa as a sentence encoder, and XLM-R of many languages: all-distilroberta-v1, multilingual-e5, bge-m3,
-- paraphrase-multilingual-mpnet and their kin. The padding's id is not counted among positions, which begin
-- behind it.
local read <const> = include("common/configuration.lua")
return include("common/encoder_family.lua") {
  name = "roberta", types = { roberta = true, ["xlm-roberta"] = true, camembert = true }, prefix = "roberta",
  defaults = { vocab = 50265, positions = 512 },
  sizes = {
    full  = { max_position_embeddings = 514, layer_norm_eps = 1e-5, type_vocab_size = 1 },
    small = { hidden_size = 128, num_hidden_layers = 3, num_attention_heads = 4, intermediate_size = 512,
              type_vocab_size = 1 },
    tiny  = { hidden_size = 64, num_hidden_layers = 2, num_attention_heads = 4, intermediate_size = 128,
              vocab_size = 1205, max_position_embeddings = 66, type_vocab_size = 1 },
  },
  sums = function(c, before, positions)
    local pad = c.pad_token_id
    if pad == nil then pad = 1 end
    if math.type(pad) ~= "integer" or pad < 0 or pad + 1 >= positions then
      read.refuse(c, "pad_token_id", "must be a whole number below " .. positions - 1 .. ", one less than there are "
                  .. "positions, is " .. read.shown(pad))
    end
    return { position = { name = before .. "position_embeddings.weight", rows = positions, first = pad + 1,
                          skip = pad },
             types = { name = before .. "token_type_embeddings.weight",
                       rows = read.count(c, "type_vocab_size", 2) } }
  end,
}
