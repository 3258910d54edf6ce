-- Layers of texts of Llama's kin, word by word: a norm, attention with rotated keys, a norm, a gated feed-forward,
-- each half added to the rows; in Gemma's what a half adds has a norm, too. Tensors have transformers' names.

-- s = { prefix = where names begin, layers, width, heads, kv_heads, head_dim, mlp, eps, offset = of norms (0),
--   activation = "silu" or "gelu", biased = { q_proj = true, ... }, head_norms, post_norms, packing = 4-bit weights,
--   scores(i) = options of layer i's attention: rotation, window, scale, cap }.
-- Gives what a description's `text` has of them: layers, width, layer, leave.
return function(s)
  local function norm(g, x, name, tap)
    return g:norm(x, { weight = s.prefix .. name .. ".weight", rms = true, eps = s.eps, offset = s.offset, name = tap })
  end

  local function bias(name, of)
    return s.biased and s.biased[name] and s.prefix .. of .. name .. ".bias" or nil
  end

  local function linear(g, x, of, name, out, tap)
    return g:linear(x, { weight = s.prefix .. of .. name .. ".weight", bias = bias(name, of), out = out, bf16 = true,
                         packing = s.packing, name = tap })
  end

  local function attention(g, x, of, i)
    local o = s.scores(i)
    o.heads, o.kv_heads, o.head_dim, o.bf16, o.packing = s.heads, s.kv_heads, s.head_dim, true, s.packing
    for _, r in ipairs { "q", "k", "v" } do
      o[r], o[r .. "_bias"] = s.prefix .. of .. r .. "_proj.weight", bias(r .. "_proj", of)
    end
    if s.head_norms then
      o.q_norm, o.k_norm = s.prefix .. of .. "q_norm.weight", s.prefix .. of .. "k_norm.weight"
      o.eps, o.offset = s.eps, s.offset
    end
    return linear(g, g:attention(x, o), of, "o_proj", s.width, "attn_out")
  end

  local function feed_forward(g, x, of)
    local y = g:gated(x, { gate = s.prefix .. of .. "gate_proj.weight", up = s.prefix .. of .. "up_proj.weight",
                           out = s.mlp, kind = s.activation, bf16 = true, packing = s.packing })
    return linear(g, y, of, "down_proj", s.width, "mlp_out")
  end

  local function layer(g, x, i)
    local at <const> = "layers." .. i .. "."
    local y = attention(g, norm(g, x, at .. "input_layernorm", "norm1"), at .. "self_attn.", i)
    if s.post_norms then y = norm(g, y, at .. "post_attention_layernorm", "norm_attn") end
    x = g:add(y, x)
    local before <const> = s.post_norms and "pre_feedforward_layernorm" or "post_attention_layernorm"
    y = feed_forward(g, norm(g, x, at .. before, "norm2"), at .. "mlp.")
    if s.post_norms then y = norm(g, y, at .. "post_feedforward_layernorm", "norm_mlp") end
    return g:add(y, x)
  end

  return { layers = s.layers, width = s.width, layer = layer,
           leave = function(g, x) return norm(g, x, "norm", "final") end }
end
