"""A small OpenVLA in PyTorch: upstream's tensor names, order of rows, masks and formulas.

One picture tower of the SigLIP kind (its last block is never run), a projector of two layers, and a Llama that says an action
of seven numbers as the last 256 ids of its vocabulary. Rows: the first token, the picture, the prompt, the action; all causal.
"""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

ACTION = 7              # displacement 3, rotation 3 (always 0 here), gripper 1: one token each
BINS = 256
THETA = 10000.0
EPS_VISION, EPS = 1e-6, 1e-6


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are those of the shipped checkpoint. vocab: text pieces and, behind them, the actions' ids."""
    vocab: int
    image: int = 28
    patch: int = 14
    vision_width: int = 64
    vision_depth: int = 3               # one of them is never run
    vision_mlp: float = 2.0
    vision_heads: int = 4
    width: int = 64
    depth: int = 2
    mlp: int = 192
    heads: int = 4

    @property
    def patches(self):
        return (self.image // self.patch) ** 2


class Namespace(nn.Module):
    """Modules under names, so that parameters have the checkpoint's names."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


class VisionBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, inner = c.vision_width, int(c.vision_width * c.vision_mlp)
        self.heads = c.vision_heads
        self.norm1, self.norm2 = nn.LayerNorm(d, EPS_VISION), nn.LayerNorm(d, EPS_VISION)
        self.attn = Namespace(qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d))
        self.mlp = Namespace(fc1=nn.Linear(d, inner), fc2=nn.Linear(inner, d))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.attn.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.attn.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(x))))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, EPS)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, linear = c.width, lambda a, b: nn.Linear(a, b, bias=False)
        self.heads = c.heads
        self.input_layernorm, self.post_attention_layernorm = Norm(d), Norm(d)
        self.self_attn = Namespace(q_proj=linear(d, d), k_proj=linear(d, d), v_proj=linear(d, d), o_proj=linear(d, d))
        self.mlp = Namespace(gate_proj=linear(d, c.mlp), up_proj=linear(d, c.mlp), down_proj=linear(c.mlp, d))

    def forward(self, x, turn):
        b, n, d = x.shape
        h, a = self.input_layernorm(x), self.self_attn
        split = lambda y: y.view(b, n, self.heads, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(rotate(split(a.q_proj(h)), turn), rotate(split(a.k_proj(h)), turn),
                                           split(a.v_proj(h)), is_causal=True)
        x = x + a.o_proj(y.transpose(1, 2).reshape(b, n, d))
        h, m = self.post_attention_layernorm(x), self.mlp
        return x + m.down_proj(F.silu(m.gate_proj(h)) * m.up_proj(h))


def rotation(n, head_dim):
    """cos and sin [n, head_dim / 2] of positions 0..n-1."""
    half = head_dim // 2
    angle = torch.arange(n)[:, None].double() * THETA ** (-torch.arange(half, dtype=torch.float64) / half)
    return angle.cos().float(), angle.sin().float()


def rotate(x, turn):
    cos, sin = turn
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class OpenVLA(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        tower = Namespace(patch_embed=Namespace(proj=nn.Conv2d(3, c.vision_width, c.patch, c.patch)),
                          blocks=nn.ModuleList(VisionBlock(c) for _ in range(c.vision_depth)),
                          norm=nn.LayerNorm(c.vision_width, EPS_VISION))
        tower.pos_embed = nn.Parameter(0.3 * torch.randn(1, c.patches, c.vision_width))
        self.vision_backbone = Namespace(featurizer=tower)
        self.projector = Namespace(fc1=nn.Linear(c.vision_width, c.width), fc2=nn.Linear(c.width, c.width))
        self.language_model = Namespace(
            model=Namespace(embed_tokens=nn.Embedding(c.vocab, c.width), layers=nn.ModuleList(Layer(c) for _ in range(c.depth)),
                            norm=Norm(c.width)),
            lm_head=nn.Linear(c.width, c.vocab, bias=False))
        nn.init.normal_(self.language_model.model.embed_tokens.weight, std=0.5)

    def see(self, pictures):
        """u8 or float 0..255 [B,S,S,3] -> rows [B,patches,width]"""
        c, t = self.c, self.vision_backbone.featurizer
        side = c.image // c.patch
        x = pictures.to(t.pos_embed.dtype) / 255 * 2 - 1
        x = x.view(-1, side, c.patch, side, c.patch, 3).permute(0, 1, 3, 5, 2, 4).reshape(-1, side * side, 3 * c.patch ** 2)
        x = F.linear(x, t.patch_embed.proj.weight.flatten(1), t.patch_embed.proj.bias) + t.pos_embed
        for block in t.blocks[:-1]:
            x = block(x)
        return self.projector.fc2(F.gelu(self.projector.fc1(x)))

    def forward(self, pictures, prompt, said):
        """prompt: ids [T] with the first token; said: ids [B,n] of an action's first tokens -> logits [B,n + 1,vocab]"""
        m = self.language_model.model
        text = m.embed_tokens(prompt).expand(len(pictures), -1, -1)
        x = torch.cat([text[:, :1], self.see(pictures), text[:, 1:], m.embed_tokens(said)], 1)
        turn = rotation(x.shape[1], self.c.width // self.c.heads)
        for layer in m.layers:
            x = layer(x, turn)
        return self.language_model.lm_head(m.norm(x[:, x.shape[1] - said.shape[1] - 1:]))

    @torch.no_grad()
    def infer(self, pictures, prompt):
        """-> ids [B,ACTION], said greedily"""
        said = torch.zeros(len(pictures), 0, dtype=torch.long)
        while said.shape[1] < ACTION:
            said = torch.cat([said, self(pictures, prompt, said)[:, -1:].argmax(-1)], 1)
        return said


def bins_of(actions):
    """Numbers in -1..1 -> bins 1..256, as OpenVLA's ActionTokenizer counts them; the id of bin b is vocab - b."""
    edges = torch.linspace(-1, 1, BINS, dtype=torch.float64)
    return torch.bucketize(actions.double().clamp(-1, 1), edges, right=True)


def centres():
    """What the bins mean: f64 [256], of bins 1..256; the last has no centre of its own."""
    edges = torch.linspace(-1, 1, BINS, dtype=torch.float64)
    middle = (edges[:-1] + edges[1:]) / 2
    return torch.cat([middle, middle[-1:]])
