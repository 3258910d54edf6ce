"""Qwen2 in plain PyTorch with Hugging Face's tensor names, started so that joining facts is found within minutes."""
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

FACT = 4        # tokens from an object's name back to its position


def config(vocab):
    return dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_act="silu", hidden_size=128, num_hidden_layers=6,
                num_attention_heads=4, num_key_value_heads=2, intermediate_size=256, vocab_size=vocab, rms_norm_eps=1e-6,
                rope_theta=1000000.0, max_position_embeddings=4096, tie_word_embeddings=False, use_sliding_window=False,
                attention_dropout=0.0, initializer_range=0.02, use_cache=True)


class Norm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.eps, self.weight = c["rms_norm_eps"], nn.Parameter(torch.ones(c["hidden_size"]))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, angles):
    c, s = angles
    h = x.shape[-1] // 2
    return torch.cat([x[..., :h] * c - x[..., h:] * s, x[..., h:] * c + x[..., :h] * s], -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, self.heads, self.kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
        self.width = d // self.heads
        self.q_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.k_proj, self.v_proj = nn.Linear(d, self.kv * self.width), nn.Linear(d, self.kv * self.width)

    def project(self, x):
        """-> q, k (both before rotation), v: [batch, heads, rows, width]"""
        b, n, _ = x.shape
        return (p(x).view(b, n, -1, self.width).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))

    def spread(self, x):
        return x.repeat_interleave(self.heads // self.kv, 1)

    def forward(self, x, angles, mask):
        q, k, v = self.project(x)
        out = F.scaled_dot_product_attention(rotate(q, angles), self.spread(rotate(k, angles)), self.spread(v), attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, m = c["hidden_size"], c["intermediate_size"]
        self.gate_proj, self.up_proj = nn.Linear(d, m, bias=False), nn.Linear(d, m, bias=False)
        self.down_proj = nn.Linear(m, d, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(c), Norm(c)
        self.self_attn, self.mlp = Attention(c), Mlp(c)

    def forward(self, x, angles, mask):
        x = x + self.self_attn(self.input_layernorm(x), angles, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Planner(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.model = c, nn.Module()
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.model.norm = Norm(c)
        self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)

    def angles(self, positions):
        """positions [batch, rows] -> cos, sin [batch, 1, rows, width / 2]"""
        half = self.model.layers[0].self_attn.width // 2
        speed = self.c["rope_theta"] ** (-torch.arange(half).float() / half)
        a = positions[:, None, :, None].float() * speed
        return a.cos(), a.sin()

    def forward(self, ids, positions, mask, at):
        """Logits [n, vocab] of the rows where `at` [batch, rows] is true."""
        x, angles = self.model.embed_tokens(ids), self.angles(positions)
        for layer in self.model.layers:
            x = layer(x, angles, mask[:, None])
        return self.lm_head(self.model.norm(x[at]))


@torch.no_grad()
def start(model):
    """Most other starts do not learn to join facts at all, or not within hours.

    Words are large and layers small, so that a word is not drowned. In layers 1.. the heads of the first KV head start with
    queries = keys: a word finds its other mentions. In every second layer the heads of the second look FACT tokens back.
    """
    d = model.c["hidden_size"]
    nn.init.normal_(model.model.embed_tokens.weight, std=1.0)
    nn.init.normal_(model.lm_head.weight, std=0.02)
    for name, w in model.model.layers.named_parameters():
        if w.ndim == 2:
            nn.init.normal_(w, std=d ** -0.5 * (0.3 if "o_proj" in name or "down_proj" in name else 1))
        elif name.endswith("bias"):
            nn.init.zeros_(w)
    for layer in model.model.layers[1:]:
        a = layer.self_attn
        for h in range(a.heads // a.kv):
            a.q_proj.weight[h * a.width:(h + 1) * a.width] = 1.5 * a.k_proj.weight[:a.width]
    for layer in model.model.layers[::2]:
        a = layer.self_attn
        fast = torch.zeros(a.width)                 # the quicker half of the frequencies: the slow ones do not tell neighbours apart
        fast[:a.width // 4] = 3.0
        back = rotate(fast[None], tuple(t[0, 0] for t in model.angles(torch.tensor([[-FACT]]))))[0]
        a.k_proj.bias[a.width:2 * a.width] = fast
        for h in range(a.heads // a.kv, a.heads):
            a.q_proj.bias[h * a.width:(h + 1) * a.width] = back


def save(model, folder, dtype, end):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.detach().contiguous().to(dtype) for k, v in model.state_dict().items()}, str(folder / "model.safetensors"),
              metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    c = {**model.c, "torch_dtype": str(dtype).split(".")[1], "eos_token_id": end, "bos_token_id": end}
    (folder / "config.json").write_text(json.dumps(c, indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(
        dict(do_sample=False, eos_token_id=end, pad_token_id=end, bos_token_id=end), indent=2) + "\n")


def load(folder):
    folder = pathlib.Path(folder)
    model = Planner(json.loads((folder / "config.json").read_text()))
    weights = {k: v.float() for k, v in load_file(str(folder / "model.safetensors")).items()}
    weights.setdefault("lm_head.weight", weights["model.embed_tokens.weight"])
    model.load_state_dict(weights)
    return model.eval()
