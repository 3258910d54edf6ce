"""A small pi0.5 in PyTorch: openpi's tensor names, masks, positions and formulas.

SigLIP tower, projector, Gemma prefix (pictures and prompt see each other, the sentence is causal behind them), and a
flow-matching expert with adaptive norms over the keys and values of the prefix. Actions and sentence come from one
prefix. The expert may be given the first d actions of a chunk (arXiv 2512.05964): they enter clean, at time 0.
"""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

EPS = 1e-6
THETA = 10000.0


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are those of the shipped checkpoints."""
    image: int = 64
    patch: int = 16
    views: int = 2
    vision_width: int = 128
    vision_depth: int = 3
    vision_mlp: int = 384
    vision_heads: int = 4
    width: int = 128
    depth: int = 4
    mlp: int = 384
    expert_width: int = 96
    expert_mlp: int = 256
    heads: int = 4
    kv_heads: int = 1
    head_dim: int = 32
    vocab: int = 1024
    horizon: int = 16
    action_dim: int = 4

    @property
    def picture_tokens(self):
        return (self.image // self.patch) ** 2


class Namespace(nn.Module):
    """Modules under names, so that parameters have the checkpoint's names."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


def rotation(positions, head_dim):
    """cos and sin [B,1,N,head_dim / 2] of positions [B,N]."""
    half = head_dim // 2
    angle = positions[:, None, :, None].double() * THETA ** (-torch.arange(half, dtype=torch.float64) / half)
    return angle.cos(), angle.sin()


def rotate(x, turn):
    cos, sin = turn
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x, _=None):
        return F.rms_norm(x, x.shape[-1:], 1 + self.weight, EPS), None


class AdaptiveNorm(nn.Module):
    """Scale, shift and gate from a condition [B,N or 1,width]."""

    def __init__(self, width):
        super().__init__()
        self.dense = nn.Linear(width, 3 * width)
        nn.init.zeros_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)
        nn.init.ones_(self.dense.bias[2 * width:])      # gates that start open train faster than openpi's zeros

    def forward(self, x, condition):
        scale, shift, gate = self.dense(condition).to(x.dtype).chunk(3, -1)
        return torch.addcmul(shift, F.rms_norm(x, x.shape[-1:], None, EPS), 1 + scale), gate


class Attention(nn.Module):
    def __init__(self, width, c):
        super().__init__()
        self.c = c
        self.q_proj = nn.Linear(width, c.heads * c.head_dim, bias=False)
        self.k_proj = nn.Linear(width, c.kv_heads * c.head_dim, bias=False)
        self.v_proj = nn.Linear(width, c.kv_heads * c.head_dim, bias=False)
        self.o_proj = nn.Linear(c.heads * c.head_dim, width, bias=False)

    def forward(self, x, turn, mask, past):
        """Rows over past keys and their own; returns the output and the own keys and values."""
        b, n, _ = x.shape
        split = lambda y, heads: y.view(b, n, heads, self.c.head_dim).transpose(1, 2)
        q, k = rotate(split(self.q_proj(x), self.c.heads), turn), rotate(split(self.k_proj(x), self.c.kv_heads), turn)
        own = k, split(self.v_proj(x), self.c.kv_heads)
        k, v = own if past is None else (torch.cat(p, 2) for p in zip(past, own))
        many = lambda y: y.repeat_interleave(self.c.heads // self.c.kv_heads, 1)
        y = F.scaled_dot_product_attention(q, many(k), many(v), attn_mask=mask)
        return self.o_proj(y.transpose(1, 2).reshape(b, n, -1)), own


class GatedMlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, width, inner, c, norm):
        super().__init__()
        self.self_attn, self.mlp = Attention(width, c), GatedMlp(width, inner)
        self.input_layernorm, self.post_attention_layernorm = norm(width), norm(width)

    def forward(self, x, turn, mask, past=None, condition=None):
        h, gate = self.input_layernorm(x, condition)
        h, own = self.self_attn(h, turn, mask, past)
        x = x + (h if gate is None else h * gate)
        h, gate = self.post_attention_layernorm(x, condition)
        h = self.mlp(h)
        return x + (h if gate is None else h * gate), own


class Stack(nn.Module):
    def __init__(self, width, inner, c, norm):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, inner, c, norm) for _ in range(c.depth))
        self.norm = norm(width)


class VisionAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (p(x).view(b, n, self.heads, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        return self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class VisionMlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class VisionLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.layer_norm1, self.layer_norm2 = (nn.LayerNorm(c.vision_width, EPS) for _ in range(2))
        self.self_attn, self.mlp = VisionAttention(c.vision_width, c.vision_heads), VisionMlp(c.vision_width, c.vision_mlp)

    def forward(self, x):
        x = x + self.self_attn(self.layer_norm1(x))
        return x + self.mlp(self.layer_norm2(x))


def vision_tower(c):
    position = nn.Embedding(c.picture_tokens, c.vision_width)
    nn.init.normal_(position.weight, std=0.3)
    return Namespace(
        embeddings=Namespace(patch_embedding=nn.Conv2d(3, c.vision_width, c.patch, c.patch), position_embedding=position),
        encoder=Namespace(layers=nn.ModuleList(VisionLayer(c) for _ in range(c.vision_depth))),
        post_layernorm=nn.LayerNorm(c.vision_width, EPS))


class Pi05(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        head = nn.Linear(c.width, c.vocab, bias=False)      # tied: also the embedding table
        nn.init.normal_(head.weight, std=c.width ** -0.5)
        self.paligemma_with_expert = Namespace(
            paligemma=Namespace(lm_head=head, model=Namespace(
                vision_tower=Namespace(vision_model=vision_tower(c)),
                multi_modal_projector=Namespace(linear=nn.Linear(c.vision_width, c.width)),
                language_model=Stack(c.width, c.mlp, c, Norm))),
            gemma_expert=Namespace(model=Stack(c.expert_width, c.expert_mlp, c, AdaptiveNorm)))
        self.action_in_proj = nn.Linear(c.action_dim, c.expert_width)
        self.action_out_proj = nn.Linear(c.expert_width, c.action_dim)
        self.time_mlp_in, self.time_mlp_out = (nn.Linear(c.expert_width, c.expert_width) for _ in range(2))

    # the prefix

    def see(self, images):
        """u8 or float 0..255 [B,views,S,S,3] -> rows [B, views * picture_tokens, width]"""
        model, b, c = self.paligemma_with_expert.paligemma.model, images.shape[0], self.c
        side = c.image // c.patch
        x = images.flatten(0, 1).to(self.dtype) / 255 * 2 - 1
        x = x.view(-1, side, c.patch, side, c.patch, 3).permute(0, 1, 3, 5, 2, 4).reshape(-1, side * side, 3 * c.patch ** 2)
        tower = model.vision_tower.vision_model
        patch = tower.embeddings.patch_embedding
        x = F.linear(x, patch.weight.flatten(1), patch.bias).to(self.dtype) + tower.embeddings.position_embedding.weight
        for layer in tower.encoder.layers:
            x = layer(x)
        return model.multi_modal_projector.linear(tower.post_layernorm(x)).to(self.dtype).view(b, -1, c.width)

    @property
    def dtype(self):
        return self.action_in_proj.weight.dtype

    def embed(self, ids):
        return F.embedding(ids, self.paligemma_with_expert.paligemma.lm_head.weight) * math.sqrt(self.c.width)

    def prefix(self, images, ids, valid, causal_from):
        """ids [B,T], padding where `valid` is false; ids from column causal_from on are causal.

        -> rows after the final norm, keys and values of each layer, valid of all rows [B,N]
        """
        seen = self.see(images)
        x = torch.cat([seen, self.embed(ids)], 1)
        b, n, _ = x.shape
        valid = torch.cat([valid.new_ones(b, seen.shape[1]), valid], 1)
        group = torch.zeros(n, dtype=torch.long)
        group[seen.shape[1] + causal_from:] = 1
        group = group.cumsum(0)
        mask = (group[None, :] <= group[:, None]) & valid[:, None, None, :]
        turn = rotation(valid.long().cumsum(1) - 1, self.c.head_dim)
        kv, stack = [], self.paligemma_with_expert.paligemma.model.language_model
        for layer in stack.layers:
            x, own = layer(x, self.cast(turn), mask)
            kv.append(own)
        return stack.norm(x)[0], kv, valid

    def cast(self, turn):
        return tuple(t.to(self.dtype) for t in turn)

    def logits(self, h):
        return F.linear(h, self.paligemma_with_expert.paligemma.lm_head.weight)

    # the expert

    def condition(self, t):
        """Times of any shape -> [*, expert_width]"""
        half = self.c.expert_width // 2
        period = 4e-3 * 1000.0 ** torch.linspace(0, 1, half, dtype=torch.float64)
        angle = 2 * math.pi * t.double()[..., None] / period
        h = F.silu(self.time_mlp_in(torch.cat([angle.sin(), angle.cos()], -1).to(self.dtype)))
        return F.silu(self.time_mlp_out(h)).to(self.dtype)

    def velocity(self, x, t, kv, valid):
        """x [B,H,A]; t [B,1] or [B,H], the time of each row; kv and valid of the prefix -> v [B,H,A]"""
        condition, y = self.condition(t), self.action_in_proj(x).to(self.dtype)
        b, h, _ = y.shape
        turn = self.cast(rotation(valid.sum(1, keepdim=True) + torch.arange(h), self.c.head_dim))
        mask = torch.cat([valid, valid.new_ones(b, h)], 1)[:, None, None, :]
        stack = self.paligemma_with_expert.gemma_expert.model
        for layer, past in zip(stack.layers, kv):
            y, _ = layer(y, turn, mask, past, condition)
        return self.action_out_proj(stack.norm(y, condition)[0])

    @torch.no_grad()
    def infer(self, images, prompt, noise, given=None, steps=10, max_text=12):
        """One observation: images [1,views,S,S,3], prompt ids [1,T], noise [1,H,A], given actions [1,d,A] or None.

        -> actions [1,H,A] in model space, ids of the sentence (with EOS)
        """
        h, kv, valid = self.prefix(images, prompt, torch.ones_like(prompt, dtype=torch.bool), prompt.shape[1])
        x, d = noise.clone(), 0 if given is None else given.shape[1]
        t = torch.ones(1, self.c.horizon, dtype=torch.float64)
        if d:
            x[:, :d], t[:, :d] = given, 0
        for s in range(steps):
            t[:, d:] = 1 - s / steps
            x[:, d:] -= self.velocity(x, t, kv, valid)[:, d:] / steps
        return x, self.say(h[:, -1:], kv, valid.shape[1], max_text) if max_text else []

    def say(self, h, past, length, max_text):
        text, stack = [], self.paligemma_with_expert.paligemma.model.language_model
        while True:
            text.append(int(self.logits(h[:, -1]).argmax()))
            if text[-1] == 1 or len(text) == max_text:
                return text
            turn = self.cast(rotation(torch.tensor([[length + len(text) - 1]]), self.c.head_dim))
            y, grown = self.embed(torch.tensor([[text[-1]]])), []
            for layer, kv in zip(stack.layers, past):
                y, own = layer(y, turn, None, kv)
                grown.append([torch.cat(p, 2) for p in zip(kv, own)])
            past, h = grown, stack.norm(y)[0]
