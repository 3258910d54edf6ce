"""A planner's forward where a part of the memory's keys and values is reused: what the engine computes, and training goes through.

Segments of one block are read together and without all else, from position 0 on: a block is a segment alone, or a static group of
the memory. Of each layer the segments that are computed anew are given (`fresh`); of the others K, rotated to their place in the
prompt, and V are those of their block. Which are computed anew the engine chooses by attention; here the caller does.
"""
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from model import rotate

LAYERS = 6


@dataclass
class Reuse:
    """Of a batch of rows whose first `width` tokens are the beginning and the memory."""
    block: torch.Tensor         # [rows, width]: tokens with the same number are read together
    local: torch.Tensor         # [rows, width]: a token's place in its block
    fresh: torch.Tensor         # [layers, rows, width]: whether it is computed in the prompt


def chosen(rng, count):
    """Of `count` segments: the block of each, and the last layer in which it is computed anew (-1: none).

    A third of the memories is whole, a third reused but what came too late to have keys, in a third fewer segments are
    computed from layer to layer, as with `recompute`; which ones, chance says."""
    block = list(range(count))
    if rng.random() < 0.3:
        block = [rng.randrange(count) for _ in block]
    draw = rng.random()
    if draw < 1 / 3:
        return block, [LAYERS] * count
    last = [-1] * count
    if draw > 2 / 3:
        decay, order = rng.uniform(0.2, 0.95), rng.sample(range(count), count)
        for i in range(LAYERS):
            for u in order[:max(1, int(count * decay ** i + 1e-9))]:
                last[u] = i
    return block, [LAYERS if rng.random() < 0.1 else i for i in last]


def laid(lengths):
    """-> the segment of each token of beginning and memory (-1: the beginning); lengths: those of beginning and segments"""
    return [u - 1 for u, n in enumerate(lengths) for _ in range(n)]


def plan(rows):
    """rows: (segment of each token, block of each segment, last layer of each segment) -> Reuse"""
    width = max(len(s) for s, _, _ in rows)
    block, local = torch.full((len(rows), width), -2), torch.zeros(len(rows), width, dtype=torch.long)
    last = torch.full((len(rows), width), LAYERS)
    for i, (segment, blocks, layer) in enumerate(rows):
        at = {}
        for t, u in enumerate(segment):
            b = blocks[u] if u >= 0 else -1
            block[i, t], local[i, t] = b, at.get(b, 0)
            at[b] = at.get(b, 0) + 1
            if u >= 0:
                last[i, t] = layer[u]
    return Reuse(block, local, torch.stack([last >= i for i in range(LAYERS)]))


def forward(model, ids, positions, mask, at, reuse):
    """As Planner.forward, with a memory of which a part is reused; and logits [rows, width, vocab] of the blocks that are read alone."""
    n = reuse.block.shape[1]
    x, angles = model.model.embed_tokens(ids), model.angles(positions)
    apart, near = x[:, :n], model.angles(reuse.local)
    seen = torch.ones(n, n, dtype=torch.bool).tril() & (reuse.block[:, :, None] == reuse.block[:, None, :])
    for i, layer in enumerate(model.model.layers):
        a = layer.self_attn
        q, k, v = a.project(layer.input_layernorm(x))
        alone, kept_k, kept_v = a.project(layer.input_layernorm(apart))
        fresh = reuse.fresh[i][:, None, :, None]
        k = torch.cat([torch.where(fresh, k[:, :, :n], kept_k), k[:, :, n:]], 2)
        v = torch.cat([torch.where(fresh, v[:, :, :n], kept_v), v[:, :, n:]], 2)
        x = through(layer, x, q, k, v, angles, mask)
        apart = through(layer, apart, alone, kept_k, kept_v, near, seen)
    return model.lm_head(model.model.norm(x[at])), model.lm_head(model.model.norm(apart))


def through(layer, x, q, k, v, angles, mask):
    a = layer.self_attn
    out = F.scaled_dot_product_attention(rotate(q, angles), a.spread(rotate(k, angles)), a.spread(v), attn_mask=mask[:, None])
    x = x + a.o_proj(out.transpose(1, 2).flatten(2))
    return x + layer.mlp(layer.post_attention_layernorm(x))
