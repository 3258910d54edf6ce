"""What the small SmolVLA has before it is trained: the tower, the text and a first expert of the other robot's pi0.5.

begin(model, folder, tokens) fills a model of the default sizes. Both models have one tower and nearly one text; what differs is
written into the weights: Gemma's norms multiply by 1 + w; rows of pictures are multiplied by sqrt(width), too, and have no bias;
gelu_tanh(x) is nearly silu(1.702 x) / 1.702. pi0.5's expert has norms that follow the time; the mean of what they do is a start.
"""
import pathlib
import sys

import sentencepiece
import torch
import torch.nn.functional as F

import vocabulary

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "metaworld/train"))       # the other robot's model

import checkpoint
from model import Pi05

GELU_AS_SILU = 1.702
RIDGE = 1e-2            # of the offset that stands for the projector's bias: exact would be 11 long, this is 1.5


def without_bias(weight, bias):
    """An offset of the rows before `weight` that comes to `bias` behind it, as far as small offsets can."""
    w = weight.double()
    return torch.linalg.solve(w.T @ w + RIDGE * torch.eye(w.shape[1], dtype=torch.float64), w.T @ bias.double()).float()


def gated(mlp, prefix, into, scale=None):
    """gelu's MLP as silu's; `scale` of each output row."""
    down = mlp[f"{prefix}.down_proj.weight"] / GELU_AS_SILU
    return {f"{into}.gate_proj.weight": GELU_AS_SILU * mlp[f"{prefix}.gate_proj.weight"],
            f"{into}.up_proj.weight": mlp[f"{prefix}.up_proj.weight"],
            f"{into}.down_proj.weight": down if scale is None else scale[:, None] * down}


def text(w, c, tokens, spelling):
    """Layers of the text, and rows of the tokens: the mean of those that spell them."""
    source, into, out = "paligemma_with_expert.paligemma.model.language_model.layers", "model.vlm_with_expert.vlm.model.text_model", {}
    for i in range(c.depth):
        a, b = f"{source}.{i}", f"{into}.layers.{i}"
        for name in ("input_layernorm.weight", "post_attention_layernorm.weight"):
            out[f"{b}.{name}"] = 1 + w[f"{a}.{name}"]
        out |= {f"{b}.self_attn.{n}_proj.weight": w[f"{a}.self_attn.{n}_proj.weight"] for n in "qkvo"} | gated(w, f"{a}.mlp", f"{b}.mlp")
    table, rows = w["paligemma_with_expert.paligemma.lm_head.weight"], []
    plain = {letter: byte for byte, letter in enumerate(vocabulary.letters())}
    names = sorted(tokens["model"]["vocab"], key=tokens["model"]["vocab"].get) + list(vocabulary.LAST)
    for name in names:
        special = name.startswith("<") and len(name) > 1
        word = "" if special else bytes(plain[x] for x in name).decode(errors="ignore")
        spelled = spelling.encode(" " + word if len(word) > 1 and word.isalpha() else word)     # the first word, too, has a space there
        rows.append(table[spelled].mean(0) if spelled else torch.zeros(c.width))
    return out | {f"{into}.embed_tokens.weight": torch.stack(rows)}


def tower(w, c):
    source, into = "paligemma_with_expert.paligemma.model.vision_tower.vision_model.", "model.vlm_with_expert.vlm.model.vision_model."
    project = "paligemma_with_expert.paligemma.model.multi_modal_projector.linear."
    out = {into + k.removeprefix(source): v for k, v in w.items() if k.startswith(source)}
    out[into + "post_layernorm.bias"] = out[into + "post_layernorm.bias"] + without_bias(w[project + "weight"], w[project + "bias"])
    out["model.vlm_with_expert.vlm.model.connector.modality_projection.proj.weight"] = w[project + "weight"] / c.width ** 0.5
    return out


def expert(w, c):
    """pi0.5's expert with the mean of its norms' scales and gates over the time; crossing layers begin with what they see."""
    source, into, out = "paligemma_with_expert.gemma_expert.model", "model.vlm_with_expert.lm_expert", {}
    pi = Pi05(checkpoint.Config(vocab=len(w["paligemma_with_expert.paligemma.lm_head.weight"])))
    pi.load_state_dict(w)
    condition = pi.condition(torch.linspace(0.05, 1, 20)).detach()

    def mean(name):
        made = F.linear(condition, w[f"{source}.{name}.dense.weight"], w[f"{source}.{name}.dense.bias"]).mean(0).chunk(3)
        return 1 + made[0], made[2]
    for i in range(c.depth):
        a, b = f"{source}.layers.{i}", f"{into}.layers.{i}"
        first, first_gate = mean(f"layers.{i}.input_layernorm")
        second, second_gate = mean(f"layers.{i}.post_attention_layernorm")
        out |= {f"{b}.input_layernorm.weight": first, f"{b}.post_attention_layernorm.weight": second}
        out |= {f"{b}.self_attn.{n}_proj.weight": w[f"{a}.self_attn.{n}_proj.weight"] for n in "qkv"}
        out[f"{b}.self_attn.o_proj.weight"] = first_gate[:, None] * w[f"{a}.self_attn.o_proj.weight"]
        out |= gated(w, f"{a}.mlp", f"{b}.mlp", second_gate)
        if c.crosses(i):
            out |= {f"{b}.self_attn.{n}_proj.weight": torch.eye(c.kv_heads * c.head_dim) for n in "kv"}
    out[f"{into}.norm.weight"] = mean("norm")[0]
    one, half = torch.eye(c.expert_width), "model.action_time_mlp_in.weight"
    start = torch.nn.Linear(2 * c.expert_width, c.expert_width).weight.detach()
    out[half] = torch.cat([0.5 * one, start[:, c.expert_width:]], 1)        # silu(x) is near x / 2, so y begins near a
    out["model.action_time_mlp_out.weight"] = 4 * one
    return out | {f"model.{n}": w[n] for n in w if n.startswith("action_")}


def begin(model, folder, tokens):
    """Fills `model` from a folder of metaworld's layout."""
    weights = checkpoint.weights(folder)
    spelling = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    made = text(weights, model.c, tokens, spelling) | tower(weights, model.c) | expert(weights, model.c)
    missing, unexpected = model.load_state_dict(made, strict=False)
    left = {k for k in missing if "norm.weight" not in k}
    own = {"model.vlm_with_expert.vlm.lm_head.weight", "model.state_proj.weight", "model.state_proj.bias",
           "model.action_time_mlp_in.bias", "model.action_time_mlp_out.bias"}
    assert not unexpected and left == own, (unexpected, left ^ own)
