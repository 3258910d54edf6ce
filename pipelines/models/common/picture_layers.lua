-- Picture towers of ViT's kin, word by word: patches with positions enter; a layer is a norm, attention, a norm and a
-- plain feed-forward, each half added to the rows. Every product has a bias.

-- SigLIP's names, as transformers has them; others say their own. No q: the three are in one tensor.
local siglip <const> = { q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj",
                         o = "self_attn.out_proj", up = "mlp.fc1", down = "mlp.fc2", norm1 = "layer_norm1",
                         norm2 = "layer_norm2" }

-- s = { prefix = in front of a layer's index, names = of its tensors, as above, layers, width, heads, mlp, eps,
--   activation = "gelu", final = its name (nil: no norm behind the last layer), factors = { o, down }: tensors that the
--   halves are multiplied by, f32: the tower stays as it is stored in a bf16 plan; and of what enters: image_size,
--   patch = pixels of a patch's side, embed and position = names, side = of the table of positions (nil: of the
--   picture), smooth or corners = true: they are interpolated; matrix = true: a matrix reads patches, and no
--   convolution; frames = as of conv; rotation = of queries and keys; keeps = layers whose rows project gets, too;
--   before = { { name, rows }, ... }: tensors whose rows stand in front of the patches }.
-- Gives what a tower has of them: image_size, layers, width, keeps, enter, layer, leave.
return function(s)
  local names <const>, rounds <const> = s.names or siglip, not s.f32

  local function norm(g, x, name, tap)
    return g:norm(x, { weight = name .. ".weight", bias = name .. ".bias", eps = s.eps, bf16 = rounds, name = tap })
  end

  local function linear(g, x, name, out, tap, factor)
    return g:linear(x, { weight = name .. ".weight", bias = name .. ".bias", out = out, factor = factor, bf16 = rounds,
                         name = tap })
  end

  local function attention(g, x, at)
    local o = { heads = s.heads, head_dim = s.width // s.heads, bf16 = rounds, rotation = s.rotation }
    for _, r in ipairs(names.qkv and { "qkv" } or { "q", "k", "v" }) do
      o[r], o[r .. "_bias"] = at .. names[r] .. ".weight", at .. names[r] .. ".bias"
    end
    return g:attention(x, o)
  end

  local function enter(g, x)
    local weight <const>, bias <const>, rows = s.embed .. ".weight", s.embed .. ".bias", nil
    if s.matrix then
      x = g:linear(g:patches(x, { side = s.patch }), { weight = weight, bias = bias, out = s.width, name = "patch" })
    else
      x = g:conv(x, { weight = weight, bias = bias, out = s.width, side = s.patch, stride = s.patch, frames = s.frames,
                      name = "patch" })
    end
    local grid = g:grid(x, { tensor = s.position, side = s.side or s.image_size // s.patch, smooth = s.smooth,
                             corners = s.corners })
    x = g:add(x, grid)
    for i, t in ipairs(s.before or {}) do
      rows = rows or {}
      rows[i] = g:tensor { tensor = t.name, rows = t.rows, cols = s.width }
    end
    return rows and g:concat { g:concat(rows), x } or x
  end

  local function factor(at, half) return s.factors and at .. s.factors[half] end

  local function layer(g, x, i)
    local at <const> = s.prefix .. i .. "."
    local y = attention(g, norm(g, x, at .. names.norm1, "norm1"), at)
    x = g:add(linear(g, y, at .. names.o, s.width, "attn_out", factor(at, "o")), x)
    y = linear(g, norm(g, x, at .. names.norm2, "norm2"), at .. names.up, s.mlp, "up")
    y = g:activation(y, { kind = s.activation or "gelu" })
    return g:add(linear(g, y, at .. names.down, s.width, "mlp_out", factor(at, "down")), x)
  end

  return { image_size = s.image_size, layers = s.layers, width = s.width, keeps = s.keeps, enter = enter, layer = layer,
           leave = s.final and function(g, x) return norm(g, x, s.final, "post_norm") end or nil }
end
