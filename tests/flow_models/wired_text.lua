-- A text of no paper. How each layer is wired is drawn by tests/wired_texts.py, which says it in config.json and
-- computes the same in numpy.
local c = given.config
if not c or c.model_type ~= "wired_text" then return false end
local text <const> = include("common/wired_layers.lua")(c)
text.vocab, text.scale, text.round_logits, text.mask = c.vocab, c.embedding, true, "causal_all"
text.bos, text.eos, text.max_tokens = -1, -1, 256
text.embed, text.head = { "embed.weight" }, { "embed.weight" }
return { name = "wired_text", text = text, ignored = {} }
