-- Layers of no paper, of a text or a picture tower: attention and feed-forward beside each other over one norm or over
-- two, either first, or one behind the other with norms in front of them, behind them or behind the sums; layers that
-- share their tensors, see a window, and turn keys by bases of their own, or not at all. What is drawn stands in the
-- table c (tests/wired_texts.py, tests/wired_towers.py, which compute the same in numpy).
return function(c)
  local width <const>, mlp <const> = c.width, c.mlp

  -- A norm of either kind, with a bias or none.
  local function norm(g, x, name, tap)
    local o = { weight = name .. ".weight", eps = c.eps, rms = c.norm == "rms", offset = c.offset, name = tap }
    if c.norm == "layer" and c.biased then o.bias = name .. ".bias" end
    return g:norm(x, o)
  end

  local function linear(g, x, name, out, more)
    local o = more or {}
    o.weight, o.bias, o.out, o.bf16 = name .. ".weight", c.biased and name .. ".bias" or nil, out, true
    return g:linear(x, o)
  end

  -- What a half of a layer gives, in some towers times a factor for each column.
  local function half(g, x, name)
    return linear(g, x, name, width, { factor = c.factors and name .. ".factor" or nil })
  end

  local function attention(g, x, at, wired)
    local o = { heads = c.heads, kv_heads = c.kv, head_dim = c.dim, scale = c.scale, cap = c.cap, bf16 = true,
                window = wired.window, rotation = wired.theta and { theta = wired.theta } or nil }
    for _, r in ipairs(c.fused and { "qkv" } or { "q", "k", "v" }) do
      o[r] = at .. r .. ".weight"
      if c.biased then o[r .. "_bias"] = at .. r .. ".bias" end
    end
    if c.head_norms then o.q_norm, o.k_norm, o.eps, o.offset = at .. "q_norm.weight", at .. "k_norm.weight", 1e-5, 0.5 end
    return half(g, g:attention(x, o), at .. "o")
  end

  local function feed_forward(g, x, at)
    local y
    if c.gated then
      y = g:gated(x, { gate = at .. "gate.weight", up = at .. "up.weight", out = mlp, kind = c.activation, bf16 = true })
    else
      y = g:activation(linear(g, x, at .. "up", mlp), { kind = c.activation })
    end
    return half(g, y, at .. "down")
  end

  local layers <const> = {
    parallel = function(g, x, at, wired)
      local y = norm(g, x, at .. "norm1")
      x = g:add(attention(g, y, at, wired), x)
      return g:add(feed_forward(g, y, at), x)
    end,
    first = function(g, x, at, wired)
      local y = norm(g, x, at .. "norm1")
      local more = feed_forward(g, y, at)
      return g:add(g:add(x, more), attention(g, y, at, wired))
    end,
    two_norms = function(g, x, at, wired)
      local y = norm(g, x, at .. "norm2")
      local sum = g:add(attention(g, norm(g, x, at .. "norm1"), at, wired), x)
      return g:add(sum, feed_forward(g, y, at))
    end,
    before = function(g, x, at, wired)
      x = g:add(x, attention(g, norm(g, x, at .. "norm1"), at, wired))
      return g:add(x, feed_forward(g, norm(g, x, at .. "norm2"), at))
    end,
    behind = function(g, x, at, wired)
      x = g:add(norm(g, attention(g, x, at, wired), at .. "norm1"), x)
      return g:add(norm(g, feed_forward(g, x, at), at .. "norm2"), x)
    end,
    behind_sums = function(g, x, at, wired)
      x = norm(g, g:add(attention(g, x, at, wired), x), at .. "norm1")
      return norm(g, g:add(feed_forward(g, x, at), x), at .. "norm2")
    end,
  }

  local function layer(g, x, i)
    local wired <const> = c.wired[i + 1]
    return layers[wired.kind](g, x, "layers." .. wired.tensors .. ".", wired)
  end

  return { layers = #c.wired, width = width, layer = layer,
           enter = c.enters and function(g, x) return norm(g, x, "enter") end or nil,
           leave = c.leaves ~= false and function(g, x) return norm(g, x, "leave") end or nil }
end
