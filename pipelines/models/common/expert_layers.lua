-- Layers of action experts of Llama's kin, word by word: a norm, attention over a prompt, a norm, a gated feed-forward,
-- each half added to the rows. Of a row of the time, where there is one, norms are scaled and shifted and halves gated,
-- each by a dense layer of its own. Tensors have transformers' names.

-- s = { prefix = where names begin, layers, width, heads, kv_heads, head_dim, mlp, eps, offset = of norms (0),
--   activation = "silu" or "gelu", reads(i) = options of layer i's attention: layer, lead, projected }.
-- Gives the rows behind the last norm, made of rows x over a prompt; `time`: a row of as many columns, or nil.
return function(s)
  -- A norm, and the row that gates what is made of it; nil without a time.
  local function norm(g, x, time, name, tap)
    if not time then
      return g:norm(x, { weight = s.prefix .. name .. ".weight", rms = true, eps = s.eps, offset = s.offset,
                         name = tap }), nil
    end
    local dense <const> = s.prefix .. name .. ".dense"
    local row <const> = g:linear(time, { weight = dense .. ".weight", bias = dense .. ".bias", out = 3 * s.width })
    local function part(i) return g:columns(row, { first = i * s.width, cols = s.width }) end
    return g:norm(x, { rms = true, eps = s.eps, scale = part(0), shift = part(1), name = tap }),
           tap ~= "out" and part(2) or nil
  end

  local function linear(g, x, name, out, gate, tap)
    return g:linear(x, { weight = s.prefix .. name .. ".weight", out = out, bf16 = true, gate = gate, name = tap })
  end

  local function attention(g, x, prompt, at, tap, i)
    local o = s.reads(i)
    o.over, o.heads, o.kv_heads, o.head_dim, o.bf16, o.name = prompt, s.heads, s.kv_heads, s.head_dim, true, tap
    for _, r in ipairs { "q", "k", "v" } do o[r] = s.prefix .. at .. "self_attn." .. r .. "_proj.weight" end
    return g:attention(x, o)
  end

  local function layer(g, x, prompt, time, i)
    local at <const>, tap <const> = "layers." .. i .. ".", "layer" .. i .. "."
    local y, gate = norm(g, x, time, at .. "input_layernorm", tap .. "norm1")
    y = attention(g, y, prompt, at, tap .. "attn", i)
    x = g:add(linear(g, y, at .. "self_attn.o_proj", s.width, gate, tap .. "attn_out"), x)
    y, gate = norm(g, x, time, at .. "post_attention_layernorm", tap .. "norm2")
    y = g:gated(y, { gate = s.prefix .. at .. "mlp.gate_proj.weight", up = s.prefix .. at .. "mlp.up_proj.weight",
                     out = s.mlp, kind = s.activation, bf16 = true, name = tap .. "act" })
    return g:add(linear(g, y, at .. "mlp.down_proj", s.width, gate, tap .. "mlp_out"), x, { name = tap .. "hidden" })
  end

  return function(g, x, prompt, time)
    for i = 0, s.layers - 1 do x = layer(g, x, prompt, time, i) end
    return (norm(g, x, time, "norm", "out"))
  end
end
