-- Llama 2 and 3, and what has their layers (SmolLM2): the default of a key that config.json lacks is that of
-- LlamaConfig.
local decoder <const> = include("common/decoder_family.lua")

-- m = { name, full, by_name, config, prefix }, as of decoder_family.lua.
return function(m)
  return decoder {
    name = m.name, full = m.full, by_name = m.by_name, config = m.config, prefix = m.prefix, type = "llama",
    bos = true, vocab = 32000, mlp = 11008, positions = 2048, stretches = { llama3 = true, linear = true },
  }
end
