-- Gemma 2 and 3, text alone: norms of (1 + w) in front of each half of a layer and behind it, embedding rows
-- times the root of their width, scores by query_pre_attn_scalar. The defaults are those of Gemma2Config and
-- Gemma3TextConfig.
local decoder <const> = include("common/decoder_family.lua")
local read <const> = include("common/configuration.lua")

-- m, beside what decoder_family.lua says: attention(c) adds to the scores.
return function(m)
  local function attention(c)
    local s = m.attention(c)
    s.scale = read.above(c, "query_pre_attn_scalar", 0.0, 256.0) ^ -0.5
    return s
  end
  return decoder {
    name = m.name, full = m.full, by_name = m.by_name, type = m.type, tied = true, bos = true, gelu = true,
    offset = 1.0, post_norms = true, head_norms = m.head_norms, head_dim = 256, heads = 8, kv_heads = 4,
    width = 2304, layers = 26, mlp = 9216, positions = m.positions, vocab = m.vocab, window = 4096,
    theta = m.theta, stretches = m.stretches, slides = m.slides, attention = attention,
    embedding = function(width) return width ^ 0.5 end,
    cap = function(c) return read.cap(c, "final_logit_softcapping") end,
  }
end
