"""bench_torch_model.py - pi0 and pi0.5 in PyTorch, the model that bench_torch.py times.

The mathematics and the tensor names are those of openpi's PyTorch checkpoints. In bfloat16 the
roundings are near openpi's: patch embedding, time and action projections in float32, the rest in
bfloat16 (openpi keeps the adaptive norms' projections in float32, which is slower).

A frame is encode() -> prefill() -> sample(); decode() appends one token to a batch of caches.
Caches are tensors [B, kv heads, rows, head dim] with room for the rows that follow the prefix.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

GEMMA_2B = dict(width=2048, depth=18, mlp_dim=16384, num_heads=8, num_kv_heads=1, head_dim=256)
GEMMA_300M = dict(GEMMA_2B, width=1024, mlp_dim=4096)
DUMMY = dict(width=64, depth=4, mlp_dim=128, num_heads=8, num_kv_heads=1, head_dim=16)
SMALL = dict(width=256, depth=6, mlp_dim=1024, num_heads=8, num_kv_heads=1, head_dim=64)


def _vision(image, patch, width, layers, heads, mlp):
    return dict(image_size=image, patch_size=patch, hidden_size=width, num_layers=layers,
                num_heads=heads, intermediate_size=mlp)


SIZES = {
    "full": dict(vision=_vision(224, 14, 1152, 27, 16, 4304), text=dict(GEMMA_2B, vocab_size=257152),
                 expert=GEMMA_300M),
    "small": dict(vision=_vision(224, 14, 192, 4, 4, 512), text=dict(SMALL, vocab_size=4096),
                  expert=dict(SMALL, width=128, mlp_dim=512)),
    "tiny": dict(vision=_vision(28, 7, 32, 2, 2, 64), text=dict(DUMMY, vocab_size=256), expert=DUMMY),
}
MAX_TOKENS = {"pi05": 200, "pi0": 48}

# Where openpi's files keep the parts of Model; the other names are equal.
_PALIGEMMA = "paligemma_with_expert.paligemma."
PLACES = {
    "vision.": _PALIGEMMA + "model.vision_tower.vision_model.",
    "projector.": _PALIGEMMA + "model.multi_modal_projector.linear.",
    "text.": _PALIGEMMA + "model.language_model.",
    "head.": _PALIGEMMA + "lm_head.",
    "expert.": "paligemma_with_expert.gemma_expert.model.",
}


def attend(q, k, v, mask, plain):
    """q [B, heads, m, d] against k, v [B, kv heads, n, d]; mask [m or 1, n], true = may see.

    The heads that share keys become rows of one product: exact, and faster here than expanding k and v.
    plain: two matrix products and a softmax, as openpi writes it. On CPUs with bfloat16 products it is up
    to twice as fast as torch's fused attention, except for single rows.
    """
    b, heads, m, d = q.shape
    group = heads // k.shape[1]
    if mask is not None and mask.shape[0] > 1:
        mask = mask.repeat(group, 1)
    q = q.reshape(b, k.shape[1], group * m, d)
    if plain and m > 1:
        s = torch.matmul(q * d ** -0.5, k.transpose(-1, -2))
        if mask is not None:
            s = s.masked_fill(~mask, -math.inf)
        o = torch.matmul(torch.softmax(s, -1), v)
    else:
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return o.reshape(b, heads, m, d)


def set_attention(module, name):
    """name: `plain` or `sdpa`, for all layers of the module."""
    for m in module.modules():
        if isinstance(m, (Layer, VisionLayer)):
            m.plain = name == "plain"


def rope_table(positions, head_dim, dtype, theta=10000.0):
    """positions [m] -> (cos, sin) [m, head_dim], made so that rotate() is one roll and one addcmul."""
    half = head_dim // 2
    i = torch.arange(half, dtype=torch.float64)
    a = positions.double()[:, None] * theta ** (-i / half)
    c, s = a.cos(), a.sin()
    return torch.cat([c, c], 1).to(dtype), torch.cat([-s, s], 1).to(dtype)


def rotate(x, table):
    return torch.addcmul(x * table[0], x.roll(x.shape[-1] // 2, -1), table[1])


class VisionLayer(nn.Module):
    def __init__(self, g):
        super().__init__()
        d, self.heads, self.plain = g["hidden_size"], g["num_heads"], False
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(d, 1e-6), nn.LayerNorm(d, 1e-6)
        self.self_attn = nn.ModuleDict({n: nn.Linear(d, d) for n in ("q_proj", "k_proj", "v_proj", "out_proj")})
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(d, g["intermediate_size"]),
                                  "fc2": nn.Linear(g["intermediate_size"], d)})

    def forward(self, x):
        a, (b, n, d) = self.self_attn, x.shape
        h = self.layer_norm1(x)
        q, k, v = (a[p](h).view(b, n, self.heads, -1).transpose(1, 2) for p in ("q_proj", "k_proj", "v_proj"))
        o = attend(q, k, v, None, self.plain)
        x = x + a["out_proj"](o.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.layer_norm2(x)), approximate="tanh"))


class Vision(nn.Module):
    def __init__(self, g):
        super().__init__()
        d, p = g["hidden_size"], g["patch_size"]
        self.embeddings = nn.ModuleDict({"patch_embedding": nn.Conv2d(3, d, p, p),
                                         "position_embedding": nn.Embedding((g["image_size"] // p) ** 2, d)})
        self.encoder = nn.ModuleDict({"layers": nn.ModuleList(VisionLayer(g) for _ in range(g["num_layers"]))})
        self.post_layernorm = nn.LayerNorm(d, 1e-6)

    def forward(self, images):
        """u8 [C, S, S, 3] -> [C, tokens, width]"""
        x = images.permute(0, 3, 1, 2).float() / 255 * 2 - 1
        e = self.embeddings
        x = e["patch_embedding"](x).flatten(2).transpose(1, 2) + e["position_embedding"].weight
        x = x.to(self.post_layernorm.weight.dtype)
        for layer in self.encoder["layers"]:
            x = layer(x)
        return self.post_layernorm(x)


class Norm(nn.Module):
    """RMSNorm. Plain: `weight` holds 1 + w. Adaptive: scale, shift and gate are a row of modulation."""

    def __init__(self, width, adaptive):
        super().__init__()
        if adaptive:
            self.dense = nn.Linear(width, 3 * width)
        else:
            self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x, mod):
        if mod is None:
            return F.rms_norm(x, x.shape[-1:], self.weight, 1e-6), None
        scale, shift, gate = mod.chunk(3, -1)
        return torch.addcmul(shift, F.rms_norm(x, x.shape[-1:], None, 1e-6), 1 + scale), gate


def _add(x, y, gate):
    return x + y if gate is None else torch.addcmul(x, y, gate)


class Layer(nn.Module):
    def __init__(self, g, adaptive):
        super().__init__()
        d, q, kv = g["width"], g["num_heads"] * g["head_dim"], g["num_kv_heads"] * g["head_dim"]
        self.head_dim, self.plain = g["head_dim"], False
        bare = lambda a, b: nn.Linear(a, b, bias=False)
        self.self_attn = nn.ModuleDict({"q_proj": bare(d, q), "k_proj": bare(d, kv), "v_proj": bare(d, kv),
                                        "o_proj": bare(q, d)})
        self.mlp = nn.ModuleDict({"gate_proj": bare(d, g["mlp_dim"]), "up_proj": bare(d, g["mlp_dim"]),
                                  "down_proj": bare(g["mlp_dim"], d)})
        self.input_layernorm, self.post_attention_layernorm = Norm(d, adaptive), Norm(d, adaptive)

    def _heads(self, name, h):
        return self.self_attn[name](h).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def store(self, h, rope, cache, at):
        """Writes the rows' keys and values at row `at`; returns all keys and values up to them."""
        end = at + h.shape[1]
        for c, rows in zip(cache, (rotate(self._heads("k_proj", h), rope), self._heads("v_proj", h))):
            c[:, :, at:end] = rows
        return cache[0][:, :, :end], cache[1][:, :, :end]

    def forward(self, x, rope, cache, at, mask, mods=(None, None)):
        h, gate = self.input_layernorm(x, mods[0])
        k, v = self.store(h, rope, cache, at)
        o = attend(rotate(self._heads("q_proj", h), rope), k, v, mask, self.plain)
        x = _add(x, self.self_attn["o_proj"](o.transpose(1, 2).flatten(2)), gate)
        h, gate = self.post_attention_layernorm(x, mods[1])
        h = F.gelu(self.mlp["gate_proj"](h), approximate="tanh") * self.mlp["up_proj"](h)
        return _add(x, self.mlp["down_proj"](h), gate)


class Stack(nn.Module):
    def __init__(self, g, adaptive=False):
        super().__init__()
        self.layers = nn.ModuleList(Layer(g, adaptive) for _ in range(g["depth"]))
        self.norm = Norm(g["width"], adaptive)

    def norms(self):
        return [n for l in self.layers for n in (l.input_layernorm, l.post_attention_layernorm)] + [self.norm]


class Model(nn.Module):
    """`name` is pi0 or pi05; `g` as in SIZES. shortcuts: exact savings openpi does not make (prefill, tabulate)."""

    def __init__(self, name, g, horizon, action_dim, shortcuts=False):
        super().__init__()
        self.adaptive, self.g, self.horizon, self.action_dim = name == "pi05", g, horizon, action_dim
        self.shortcuts, self.table = shortcuts, None
        t, w = g["text"], g["expert"]["width"]
        self.vision = Vision(g["vision"])
        self.projector = nn.Linear(g["vision"]["hidden_size"], t["width"])
        self.text = Stack(t)
        self.head = nn.Linear(t["width"], t["vocab_size"], bias=False)      # also the embedding table
        self.expert = Stack(g["expert"], self.adaptive)
        self.action_in_proj, self.action_out_proj = nn.Linear(action_dim, w), nn.Linear(w, action_dim)
        if self.adaptive:
            self.time_mlp_in, self.time_mlp_out = nn.Linear(w, w), nn.Linear(w, w)
        else:
            self.state_proj = nn.Linear(action_dim, w)
            self.action_time_mlp_in, self.action_time_mlp_out = nn.Linear(2 * w, w), nn.Linear(w, w)

    @property
    def dtype(self):
        return self.projector.weight.dtype

    def suffix_rows(self):
        return self.horizon + (0 if self.adaptive else 1)

    def encode(self, images):
        """u8 [C, S, S, 3] -> [1, C * tokens, width]"""
        return self.projector(self.vision(images)).flatten(0, 1)[None]

    def embed(self, ids):
        return F.embedding(ids, self.head.weight) * math.sqrt(self.g["text"]["width"])

    def new_caches(self, batch, rows):
        t = self.g["text"]
        shape = (batch, t["num_kv_heads"], rows, t["head_dim"])
        return [(torch.zeros(shape, dtype=self.dtype), torch.zeros(shape, dtype=self.dtype))
                for _ in range(t["depth"])]

    def prefill(self, images, ids, valid, caches, text):
        """images from encode(), ids [T], valid [rows] or None (all). -> last valid row's hidden state, if text.

        Padded rows are computed and masked as keys. Shortcut: for actions alone the last layer needs only k and v.
        """
        x = torch.cat([images, self.embed(ids[None])], 1)
        n = x.shape[1]
        positions = torch.arange(n) if valid is None else valid.long().cumsum(0) - 1
        rope = rope_table(positions, self.g["text"]["head_dim"], self.dtype)
        mask = None if valid is None else valid[None]
        last = len(caches) - 1
        for i, (layer, cache) in enumerate(zip(self.text.layers, caches)):
            if i == last and self.shortcuts and not text:
                layer.store(layer.input_layernorm(x, None)[0], rope, cache, 0)
                return None
            x = layer(x, rope, cache, 0, mask)
        row = n - 1 if valid is None else int(valid.nonzero()[-1])
        return self.text.norm(x[:, row:row + 1], None)[0] if text else None

    def decode(self, ids, position, caches, at, valid=None):
        """One token of each sequence: ids [B] at `position`, stored at cache row `at`. -> logits [B, vocab]"""
        x = self.embed(ids[:, None])
        rope = rope_table(torch.tensor([position]), self.g["text"]["head_dim"], self.dtype)
        mask = None if valid is None else valid[None, :at + 1]
        for layer, cache in zip(self.text.layers, caches):
            x = layer(x, rope, cache, at, mask)
        return self.head(self.text.norm(x, None)[0])[:, 0]

    def time(self, t):
        """t [] float64 -> [1, width]: sine and cosine of the flow time, float32."""
        half = self.g["expert"]["width"] // 2
        period = 4e-3 * 1000.0 ** torch.linspace(0, 1, half, dtype=torch.float64)
        a = 2 * math.pi * t / period
        return torch.cat([a.sin(), a.cos()])[None].float()

    def modulation(self, t):
        """The rows (scale, shift, gate) of all norms of the expert at flow time t."""
        if not self.adaptive:
            return [None] * (2 * len(self.expert.layers) + 1)
        c = F.silu(self.time_mlp_out(F.silu(self.time_mlp_in(self.time(t)))))
        c = c.to(self.dtype)
        return [n.dense(c) for n in self.expert.norms()]

    def suffix(self, x, t, state):
        a = self.action_in_proj(x)
        if not self.adaptive:
            a = torch.cat([a, self.time(t)[:, None].expand(-1, a.shape[1], -1)], 2)
            a = self.action_time_mlp_out(F.silu(self.action_time_mlp_in(a)))
            a = torch.cat([self.state_proj(state)[:, None], a], 1)
        return a.to(self.dtype)

    def velocity(self, x, t, state, caches, n, rope, mask, mods):
        y = self.suffix(x, t, state)
        for i, (layer, cache) in enumerate(zip(self.expert.layers, caches)):
            y = layer(y, rope, cache, n, mask, mods[2 * i:2 * i + 2])
        y = self.expert.norm(y[:, -self.horizon:], mods[-1])[0]
        return self.action_out_proj(y.float())

    def suffix_mask(self, n, valid):
        """[1 or suffix rows, keys] or None. pi0's state row does not see the action rows."""
        m = self.suffix_rows()
        if valid is None and self.adaptive:
            return None
        keys = torch.cat([torch.ones(n, dtype=torch.bool) if valid is None else valid,
                          torch.ones(m, dtype=torch.bool)])[None]
        if self.adaptive:
            return keys
        mask = keys.repeat(m, 1)
        mask[0, n + 1:] = False
        return mask

    def tabulate(self, steps):
        """Shortcut: the modulation of every step depends on the time alone; it is computed once, here."""
        self.table = [self.modulation(t) for t in flow_times(steps)]

    def sample(self, caches, n, valid, noise, state, steps):
        """noise [1, H, A] float32, state [1, A]; n cache rows hold the prefix. -> actions [1, H, A] float32"""
        first = n if valid is None else int(valid.sum())
        rope = rope_table(first + torch.arange(self.suffix_rows()), self.g["text"]["head_dim"], self.dtype)
        mask, x = self.suffix_mask(n, valid), noise
        for s, t in enumerate(flow_times(steps)):
            mods = self.table[s] if self.table else self.modulation(t)
            x = x - self.velocity(x, t, state, caches, n, rope, mask, mods) / steps
        return x


def flow_times(steps):
    return [torch.tensor(1 - s / steps, dtype=torch.float64) for s in range(steps)]


# Parts that stay float32 in a bfloat16 model, as in openpi.
FLOAT32 = ("vision.embeddings.", "action_", "time_mlp_", "state_proj.")


def _allocate(model, dtype):
    """Storage without values for the parameters of a model built on the meta device: one copy of each."""
    for name, p in list(model.named_parameters()):
        owner, _, leaf = name.rpartition(".")
        empty = torch.empty(p.shape, dtype=torch.float32 if name.startswith(FLOAT32) else dtype)
        setattr(model.get_submodule(owner), leaf, nn.Parameter(empty, requires_grad=False))
    return model.eval()


def random_model(name, size, horizon, dtype, shortcuts=False):
    """Random weights: each matrix is filled from one block of normal numbers, scaled by its width."""
    with torch.device("meta"):
        model = Model(name, SIZES[size], horizon, 32, shortcuts)
    model = _allocate(model, dtype)
    block = torch.randn(1 << 20, generator=torch.Generator().manual_seed(1))
    for key, p in model.named_parameters():
        flat, scale = p.data.view(-1), p.shape[-1] ** -0.5 if p.dim() > 1 else 0.02
        part = (block * scale).to(p.dtype)
        for i in range(0, flat.numel(), part.numel()):
            flat[i:i + part.numel()] = part[:flat.numel() - i]
        if "norm" in key and key.endswith("weight") and p.dim() == 1:
            p.data += 1
    return model


def load_model(path, dtype, shortcuts=False):
    """A checkpoint directory in openpi's layout with its sizes under `geometry` in config.json."""
    from safetensors import safe_open
    path = pathlib.Path(path)
    config = json.loads((path / "config.json").read_text())
    with safe_open(str(path / "model.safetensors"), "pt") as f:
        name = "pi05" if "time_mlp_in.weight" in f.keys() else "pi0"
        with torch.device("meta"):
            model = Model(name, config["geometry"], config["action_horizon"], config["action_dim"], shortcuts)
        model = _allocate(model, dtype)
        for key, p in model.named_parameters():
            place = next((new + key[len(old):] for old, new in PLACES.items() if key.startswith(old)), key)
            w = f.get_tensor(place).float()
            if isinstance(model.get_submodule(key.rpartition(".")[0]), Norm):
                w = 1 + w
            p.data.copy_(w)
    return model
