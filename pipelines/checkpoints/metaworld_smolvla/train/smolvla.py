"""A small SmolVLA in PyTorch: LeRobot's tensor names, masks, positions and formulas, for training and for the judge.

SigLIP tower, squares of patches joined and projected, text layers over pictures, task and one row of the state, and a
flow-matching expert beside them whose layers in turn see the prefix with their own earlier rows, or cross to
projections of the prefix's keys and values. Prompts of a batch have one length: no row is padding.
"""
import json
import math
import pathlib
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "metaworld/train"))       # the other robot's model

from model import Namespace, VisionLayer, rotate, rotation, vision_tower


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are those of the shipped checkpoint."""
    image: int = 64
    patch: int = 16
    vision_width: int = 128
    vision_depth: int = 3
    vision_mlp: int = 384
    vision_heads: int = 4
    squares: int = 1                # patches of a square's side, which become one row of the text
    width: int = 128
    depth: int = 4
    mlp: int = 384
    heads: int = 4
    kv_heads: int = 1
    head_dim: int = 32
    eps: float = 1e-5
    vocab: int = 320
    expert_share: float = 0.75      # of the text's width
    self_every: int = 2             # layers of the expert of which one sees its own rows
    horizon: int = 16
    state_dim: int = 4
    action_dim: int = 4
    steps: int = 10
    periods: tuple = (4e-3, 4.0)

    @property
    def picture_tokens(self):       # rows of the tower's position table
        return (self.image // self.patch) ** 2

    @property
    def expert_width(self):
        return int(self.width * self.expert_share)

    @property
    def expert_mlp(self):
        return 256 * math.ceil(4 * int(2 * self.expert_width / 3) / 256)

    def crosses(self, layer):
        return not (self.self_every > 0 and layer % self.self_every == 0)


def read_config(folder, vlm):
    """Sizes from config.json of the policy and of its language model."""
    c, v = (json.loads((pathlib.Path(f) / "config.json").read_text()) for f in (folder, vlm))
    text, vision = v["text_config"], v["vision_config"]
    return Config(
        image=c["resize_imgs_with_padding"][0], patch=vision["patch_size"], vision_width=vision["hidden_size"],
        vision_depth=vision["num_hidden_layers"], vision_mlp=vision["intermediate_size"],
        vision_heads=vision["num_attention_heads"], squares=v["scale_factor"], width=text["hidden_size"],
        depth=c["num_vlm_layers"], mlp=text["intermediate_size"], heads=text["num_attention_heads"],
        kv_heads=text["num_key_value_heads"], head_dim=text["head_dim"], eps=text["rms_norm_eps"], vocab=text["vocab_size"],
        expert_share=c["expert_width_multiplier"], self_every=c["self_attn_every_n_layers"], horizon=c["chunk_size"],
        state_dim=c["max_state_dim"], action_dim=c["max_action_dim"], steps=c["num_steps"],
        periods=(c["min_period"], c["max_period"]))


class Norm(nn.Module):
    def __init__(self, width, c):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), c.eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


class Attention(nn.Module):
    """Queries over keys and values that the caller makes with `keys`, so that both may come from elsewhere."""

    def __init__(self, width, reads, c):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.c, kv = c, c.kv_heads * c.head_dim
        self.q_proj, self.o_proj = linear(width, c.heads * c.head_dim), linear(c.heads * c.head_dim, width)
        self.k_proj, self.v_proj = linear(reads, kv), linear(reads, kv)

    def split(self, y):
        return y.unflatten(-1, (-1, self.c.head_dim)).transpose(1, 2)

    def keys(self, k, v):
        """[B,N,reads] twice -> [B,kv_heads,N,head_dim] twice"""
        return self.split(self.k_proj(k)), self.split(self.v_proj(v))

    def forward(self, x, turn, k, v, mask):
        many = lambda y: y.repeat_interleave(self.c.heads // self.c.kv_heads, 1)
        y = F.scaled_dot_product_attention(rotate(self.split(self.q_proj(x)), turn), many(k), many(v), attn_mask=mask)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, width, inner, c, crosses=False):
        super().__init__()
        self.self_attn = Attention(width, c.kv_heads * c.head_dim if crosses else width, c)
        self.mlp = Mlp(width, inner)
        self.input_layernorm, self.post_attention_layernorm = Norm(width, c), Norm(width, c)

    def rest(self, x, attended):
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x))


def in_float32(name, c):
    """Whether LeRobot keeps a tensor in float32 beside others in bfloat16."""
    if "vlm_with_expert" not in name:
        return True
    layer = name.partition("lm_expert.layers.")[2].partition(".")[0]
    return bool(layer) and c.crosses(int(layer)) and ("k_proj" in name or "v_proj" in name)


class SmolVLA(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, w, e = c, c.width, c.expert_width
        proj = nn.Linear(c.squares ** 2 * c.vision_width, w, bias=False)
        embed, head = nn.Embedding(c.vocab, w), nn.Linear(w, c.vocab, bias=False)
        nn.init.normal_(embed.weight, std=w ** -0.5)        # rows are multiplied by sqrt(width), as those of pictures
        with torch.no_grad():
            proj.weight /= w ** 0.5
        self.model = Namespace(
            vlm_with_expert=Namespace(
                vlm=Namespace(lm_head=head, model=Namespace(
                    vision_model=vision_tower(c), connector=Namespace(modality_projection=Namespace(proj=proj)),
                    text_model=Namespace(embed_tokens=embed, layers=nn.ModuleList(Layer(w, c.mlp, c) for _ in range(c.depth)),
                                         norm=Norm(w, c)))),
                lm_expert=Namespace(layers=nn.ModuleList(Layer(e, c.expert_mlp, c, c.crosses(i)) for i in range(c.depth)),
                                    norm=Norm(e, c))),
            state_proj=nn.Linear(c.state_dim, w),
            action_in_proj=nn.Linear(c.action_dim, e), action_out_proj=nn.Linear(e, c.action_dim),
            action_time_mlp_in=nn.Linear(2 * e, e), action_time_mlp_out=nn.Linear(e, e))

    def see(self, images):
        """0..255 [B,views,S,S,3] -> rows [B, views * (S / patch / squares)^2, width]"""
        c, model = self.c, self.model.vlm_with_expert.vlm.model
        side = c.image // c.patch
        x = images.flatten(0, 1).float() / 255 * 2 - 1
        x = x.view(-1, side, c.patch, side, c.patch, 3).permute(0, 1, 3, 5, 2, 4).reshape(-1, side * side, 3 * c.patch ** 2)
        tower = model.vision_model
        patch = tower.embeddings.patch_embedding
        x = F.linear(x, patch.weight.flatten(1), patch.bias) + tower.embeddings.position_embedding.weight
        for layer in tower.encoder.layers:
            x = layer(x)
        few = side // c.squares
        x = tower.post_layernorm(x).view(-1, few, c.squares, few, c.squares, c.vision_width)
        x = model.connector.modality_projection.proj(x.transpose(2, 3).reshape(-1, few * few, c.squares ** 2 * c.vision_width))
        return x.view(len(images), -1, c.width)

    def seen(self, images, ids):
        """Pictures and ids of the task [B,T] -> keys and values of each text layer, [B,kv_heads,N,head_dim] twice for each.
        No row of these sees the state."""
        c, text = self.c, self.model.vlm_with_expert.vlm.model.text_model
        x = torch.cat([self.see(images), text.embed_tokens(ids)], 1) * c.width ** 0.5
        turn, made = self.turn(0, x), []
        for layer in text.layers:
            h = layer.input_layernorm(x)
            k, v = layer.self_attn.keys(h, h)
            made.append((rotate(k, turn), v))
            if len(made) < c.depth:                         # of the last layer only keys and values are read
                x = layer.rest(x, layer.self_attn(h, turn, *made[-1], None))
        return made

    def with_state(self, seen, state):
        """What seen() returned, and the normalised state [B,state_dim], whose row sees all -> keys and values that each expert
        layer reads, one row longer."""
        c, parts = self.c, self.model.vlm_with_expert
        x, read = self.model.state_proj(state)[:, None], []
        turn = self.turn(seen[0][0].shape[2], x)
        for i, (layer, expert, (k, v)) in enumerate(zip(parts.vlm.model.text_model.layers, parts.lm_expert.layers, seen)):
            h = layer.input_layernorm(x)
            own_k, own_v = layer.self_attn.keys(h, h)
            k, v = torch.cat([k, rotate(own_k, turn)], 2), torch.cat([v, own_v], 2)
            flat = lambda y: y.transpose(1, 2).flatten(2)
            read.append(expert.self_attn.keys(flat(k), flat(v)) if c.crosses(i) else (k, v))
            if i + 1 < c.depth:
                x = layer.rest(x, layer.self_attn(h, turn, k, v, None))
        return read

    def turn(self, first, x):
        """cos and sin of the rows of x [B,N,width], which stand at positions from `first` on."""
        return tuple(r.to(x.dtype) for r in rotation(first + torch.arange(x.shape[1])[None], self.c.head_dim))

    def velocity(self, x, t, read):
        """x [B,H,A]; t [B]; what with_state() returned -> v [B,H,A]"""
        c, m = self.c, self.model
        half = c.expert_width // 2
        period = c.periods[0] * (c.periods[1] / c.periods[0]) ** torch.linspace(0, 1, half, dtype=torch.float64)
        angle = 2 * math.pi * t.double()[:, None] / period
        time = torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype)[:, None].expand(-1, x.shape[1], -1)
        y = m.action_time_mlp_in(torch.cat([m.action_in_proj(x), time], -1))
        y = m.action_time_mlp_out(F.silu(y))
        h, n = x.shape[1], read[0][0].shape[2]
        behind, alone = self.turn(n, y), self.turn(0, y)
        mask = torch.cat([torch.ones(h, n), torch.ones(h, h).tril()], 1).bool()
        expert = m.vlm_with_expert.lm_expert
        for i, (layer, (k, v)) in enumerate(zip(expert.layers, read)):
            z = layer.input_layernorm(y)
            if c.crosses(i):
                y = layer.rest(y, layer.self_attn(z, alone, k, v, None))
            else:
                own_k, own_v = layer.self_attn.keys(z, z)
                k, v = torch.cat([k, rotate(own_k, behind)], 2), torch.cat([v, own_v], 2)
                y = layer.rest(y, layer.self_attn(z, behind, k, v, mask))
        return m.action_out_proj(expert.norm(y))

    @torch.no_grad()
    def infer(self, images, ids, state, noise):
        """One chunk: noise [B,H,A] -> normalised actions [B,H,A]"""
        read, x, dt = self.with_state(self.seen(images, ids), state), noise.clone(), -1.0 / self.c.steps
        for s in range(self.c.steps):
            time = torch.full((len(x),), 1.0 + s * dt, dtype=torch.float32)
            x += dt * self.velocity(x, time, read)
        return x


def load(folder, vlm):
    """The policy of a folder, in float32."""
    model = SmolVLA(read_config(folder, vlm))
    model.load_state_dict({k: v.float() for k, v in load_file(str(pathlib.Path(folder) / "model.safetensors")).items()})
    return model.eval()
