/* text_words.h - the layers of texts and towers in descriptions that tests write: one line of Lua
 * each, so that lines of what follows can be told. */
#ifndef TEC_TESTS_TEXT_WORDS_H
#define TEC_TESTS_TEXT_WORDS_H

/* text(n, o, more): o as the text of a description, with n layers of width 8; `more`: options of
 * the attentions, in place of two heads of 4 that are turned by 1e4. */
#define TEXT_WORDS                                                                                 \
    "local function text(n, o, more) o.layers, o.width = n, 8 "                                    \
    "o.layer = function(g, x, i) "                                                                 \
    "local a = { heads = 2, kv_heads = 2, head_dim = 4, q = 'q' .. i, k = 'k' .. i, "              \
    "v = 'v' .. i, rotation = { theta = 1e4 }, bf16 = true } "                                     \
    "for key, value in pairs(more or {}) do a[key] = value end "                                   \
    "local y = g:norm(x, { weight = 'norm1' .. i, eps = 1e-5, rms = true }) "                      \
    "x = g:add(g:linear(g:attention(y, a), { weight = 'o' .. i, out = 8, bf16 = true }), x) "      \
    "y = g:norm(x, { weight = 'norm2' .. i, eps = 1e-5, rms = true }) "                            \
    "y = g:gated(y, { gate = 'gate' .. i, up = 'up' .. i, out = 16, kind = 'silu', bf16 = true "   \
    "}) "                                                                                          \
    "return g:add(g:linear(y, { weight = 'down' .. i, out = 8, bf16 = true }), x) end "            \
    "o.leave = function(g, x) return g:norm(x, { weight = 'final', eps = 1e-5, rms = true }) end " \
    "return o end "

/* tower(o): the functions of a tower to its description o: patches of 4 x 4 pixels with a grid of
 * 2 x 2 positions, one layer of width 8; o.made, where it is there, makes the layer in place of the
 * usual one. project: what leaves one tower, or two, to rows of width 8. */
#define TOWER_WORDS                                                                               \
    "local function project(g, x, y) "                                                            \
    "return g:linear(y and g:beside(x, y) or x, { weight = 'pr', out = 8 }) end "                 \
    "local function tower(o) o.layers, o.width = 1, 8 "                                           \
    "o.enter = function(g, x) x = g:conv(x, { weight = 'p', out = 8, side = 4, stride = 4 }) "    \
    "return g:add(x, g:grid(x, { tensor = 'pos', side = 2 })) end "                               \
    "o.layer = o.made or function(g, x, i) "                                                      \
    "local y = g:norm(x, { weight = 'n1', eps = 1e-5, bf16 = true }) "                            \
    "y = g:attention(y, { heads = 2, head_dim = 4, q = 'vq', k = 'vk', v = 'vv', bf16 = true }) " \
    "x = g:add(g:linear(y, { weight = 'vo', out = 8, bf16 = true }), x) "                         \
    "y = g:norm(x, { weight = 'n2', eps = 1e-5, bf16 = true }) "                                  \
    "y = g:activation(g:linear(y, { weight = 'vu', out = 16, bf16 = true }), { kind = 'gelu' }) " \
    "return g:add(g:linear(y, { weight = 'vd', out = 8, bf16 = true }), x) end "                  \
    "o.leave = function(g, x) return g:norm(x, { weight = 'vf', eps = 1e-5, bf16 = true }) end "  \
    "o.made = nil return o end "

#endif
