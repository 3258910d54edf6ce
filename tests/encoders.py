#!/usr/bin/env python3
"""encoders.py - golden cases of random small sentence encoders, by a forward of our own in numpy.

usage: tests/encoders.py FOLDER SEED

Writes a case for `tectum verify` a kind of encoder and of pooling: BERT, RoBERTa (also as XLM-R and
CamemBERT write it) and DistilBERT with sizes drawn from the seed, the mean, the class token or the last
token, with and without length 1. Tokenizers and texts are those of tests/golden/encoders, beside them a
text with the padding's token in it; one text is cut at the limit. Expected values are float64; the error
that is allowed is that of the same code in float32.
"""
import json
import math
import os
import shutil
import sys

import numpy

from text_models import write

GOLDEN = "tests/golden/encoders/"
OLD = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token",
       "lasttoken": "pooling_mode_lasttoken", "max": "pooling_mode_max_tokens"}
LAYER = {
    "bert": ("encoder.layer.", "attention.self.query", "attention.self.key", "attention.self.value",
             "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
             "output.LayerNorm"),
    "distilbert": ("transformer.layer.", "attention.q_lin", "attention.k_lin", "attention.v_lin",
                   "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
}
LIMIT = 40
ROBERTAS = "roberta", "xlm-roberta", "camembert"
# A family: its model_type, where the names of its tensors begin, the case whose tokenizer it has, its
# pooling, whether a vector has length 1, how the pooling is written; `old`: and norms' names too.
FAMILIES = {
    "bert_cls": ("bert", "", "minilm_tiny", "cls", True, "flags"),
    "bert_old": ("bert", "", "minilm_tiny", "cls", True, "old"),
    "bert_last": ("bert", "bert.", "minilm_tiny", "lasttoken", False, "word"),
    "roberta_mean": ("roberta", "", "mpnet_tiny", "mean", True, "word"),
    "xlm_roberta_cls": ("xlm-roberta", "roberta.", "mpnet_tiny", "cls", False, "flags"),
    "camembert_mean": ("camembert", "roberta.", "mpnet_tiny", "mean", True, "flags"),
    "distilbert_mean": ("distilbert", "", "minilm_tiny", "mean", False, "flags"),
    "distilbert_cls": ("distilbert", "distilbert.", "minilm_tiny", "cls", True, "word"),
}


def drawn(random, kind):
    heads = int(random.choice([2, 3, 4]))
    return {"heads": heads, "width": heads * int(random.choice([8, 16, 20])),
            "mlp": int(random.choice([48, 72, 100])), "layers": int(random.choice([1, 2, 3])),
            "types": {"bert": 2, "distilbert": 0}.get(kind, 1),
            "eps": 1e-12 if kind == "distilbert" else float(random.choice([1e-12, 1e-5])),
            "pad": int(random.choice([1, 3])) if kind in ROBERTAS else None}


def config(c, kind, vocab, positions):
    if kind == "distilbert":
        return {"model_type": kind, "dim": c["width"], "n_heads": c["heads"], "hidden_dim": c["mlp"],
                "n_layers": c["layers"], "vocab_size": vocab, "max_position_embeddings": positions,
                "activation": "gelu", "sinusoidal_pos_embds": False}
    out = {"model_type": kind, "hidden_size": c["width"], "num_attention_heads": c["heads"],
           "intermediate_size": c["mlp"], "num_hidden_layers": c["layers"], "vocab_size": vocab,
           "max_position_embeddings": positions, "hidden_act": "gelu", "layer_norm_eps": c["eps"],
           "type_vocab_size": c["types"]}
    return {**out, "pad_token_id": c["pad"]} if c["pad"] is not None else out


def weights(random, c, kind, vocab, positions):
    at, q, k, v, o, norm1, up, down, norm2 = LAYER["distilbert" if kind == "distilbert" else "bert"]
    w = {}

    def matrix(name, out, inner):
        w[name + ".weight"] = random.normal(0, 1.2 / math.sqrt(inner), (out, inner))
        w[name + ".bias"] = random.normal(0, 0.2, out)

    def norm(name):
        w[name + ".weight"] = random.normal(1, 0.2, c["width"])
        w[name + ".bias"] = random.normal(0, 0.2, c["width"])

    w["embeddings.word_embeddings.weight"] = random.normal(0, 1, (vocab, c["width"]))
    w["embeddings.position_embeddings.weight"] = random.normal(0, 0.7, (positions, c["width"]))
    if c["types"]:
        w["embeddings.token_type_embeddings.weight"] = random.normal(0, 0.7, (c["types"], c["width"]))
    norm("embeddings.LayerNorm")
    for i in range(c["layers"]):
        for name in (q, k, v, o):
            matrix(f"{at}{i}.{name}", c["width"], c["width"])
        matrix(f"{at}{i}.{up}", c["mlp"], c["width"])
        matrix(f"{at}{i}.{down}", c["width"], c["mlp"])
        norm(f"{at}{i}.{norm1}")
        norm(f"{at}{i}.{norm2}")
    return {name: x.astype(numpy.float32) for name, x in w.items()}


def gelu(x):
    return x * (0.5 * (1 + numpy.vectorize(math.erf)(x / math.sqrt(2)))).astype(x.dtype)


def forward(c, kind, w, ids, dtype):
    """Rows of one text behind the last layer."""
    at, q, k, v, o, norm1, up, down, norm2 = LAYER["distilbert" if kind == "distilbert" else "bert"]

    def linear(x, name):
        return x @ w[name + ".weight"].astype(dtype).T + w[name + ".bias"].astype(dtype)

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + dtype(c["eps"]))
        return x * w[name + ".weight"].astype(dtype) + w[name + ".bias"].astype(dtype)

    counted = numpy.array(ids) != c["pad"]
    places = range(len(ids)) if c["pad"] is None else counted.cumsum() * counted + c["pad"]
    x = w["embeddings.word_embeddings.weight"][ids].astype(dtype)
    if c["types"]:
        x = x + w["embeddings.token_type_embeddings.weight"][0].astype(dtype)
    x = norm(x + w["embeddings.position_embeddings.weight"][list(places)].astype(dtype), "embeddings.LayerNorm")
    dim = c["width"] // c["heads"]
    for i in range(c["layers"]):
        layer = f"{at}{i}."
        parts = [linear(x, layer + r).reshape(len(ids), c["heads"], dim).transpose(1, 0, 2) for r in (q, k, v)]
        scores = parts[0] @ parts[1].transpose(0, 2, 1) / dtype(math.sqrt(dim))
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        scores = scores / scores.sum(-1, keepdims=True)
        mixed = (scores @ parts[2]).transpose(1, 0, 2).reshape(len(ids), c["width"])
        x = norm(x + linear(mixed, layer + o), layer + norm1)
        x = norm(x + linear(gelu(linear(x, layer + up)), layer + down), layer + norm2)
    return x


def vectors(c, kind, w, texts, pool, unit, dtype):
    rows = {"mean": lambda x: x.mean(0), "cls": lambda x: x[0], "lasttoken": lambda x: x[-1]}[pool]
    pooled = numpy.stack([rows(forward(c, kind, w, ids, dtype)) for ids in texts])
    length = numpy.sqrt((pooled * pooled).sum(-1, keepdims=True))
    return {"pooled": pooled, "embedding": pooled / length if unit else pooled}


def with_padding(golden, text, ids):
    """A text that has the padding's token between two of this one; ids of what stands on its sides are known."""
    with open(f"{GOLDEN}{golden}/checkpoint/tokenizer.json", encoding="utf-8") as file:
        token = next(t for t in json.load(file)["added_tokens"] if t["content"].lower() in ("<pad>", "[pad]"))
    return text + token["content"] + text, ids[:-1] + [token["id"]] + ids[1:]


def checkpoint(folder, golden, c, kind, w, pool, unit, written, sizes):
    os.makedirs(folder + "/1_Pooling")
    shutil.copy(f"{GOLDEN}{golden}/checkpoint/tokenizer.json", folder)
    flags = {flag: name == pool for name, flag in OLD.items()}
    modules = ["Transformer", "Pooling"] + (["Normalize"] if unit else [])
    files = {"config.json": config(c, kind, *sizes), "sentence_bert_config.json": {"max_seq_length": LIMIT},
             "1_Pooling/config.json": {"word_embedding_dimension": c["width"],
                                       **({"pooling_mode": pool} if written == "word" else flags)},
             "modules.json": [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{name}",
                               "type": "sentence_transformers.models." + name}
                              for i, name in enumerate(modules)]}
    for name, x in files.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            json.dump(x, file)
    if written == "old":
        w = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
             for name, x in w.items()}
    write(folder + "/model.safetensors", w, "F32")


def case(folder, seed, name):
    kind, prefix, golden, pool, unit, written = FAMILIES[name]
    random = numpy.random.default_rng([seed, sorted(FAMILIES).index(name)])
    with open(f"{GOLDEN}{golden}/case.json", encoding="utf-8") as file:
        old = json.load(file)
    chosen = [i for i, n in enumerate(old["lengths"]) if n < LIMIT][:14]
    chosen.append(next(i for i, n in enumerate(old["lengths"]) if n > LIMIT))
    texts, ids = [old["texts"][i] for i in chosen], [old["token_ids"][i] for i in chosen]
    ids[-1] = ids[-1][:LIMIT - 1] + ids[-1][-1:]
    text, padded = with_padding(golden, texts[2], ids[2])
    texts, ids = texts + [text], ids + [padded]
    c, vocab = drawn(random, kind), old["config"]["vocab_size"]
    sizes = vocab, LIMIT + (0 if c["pad"] is None else c["pad"] + 1)
    w = weights(random, c, kind, *sizes)
    named = {prefix + at: x for at, x in w.items()}
    checkpoint(folder + "/checkpoint", golden, c, kind, named, pool, unit, written, sizes)
    want = vectors(c, kind, w, ids, pool, unit, numpy.float64)
    less = vectors(c, kind, w, ids, pool, unit, numpy.float32)
    bounds = {}
    for key, x in want.items():
        e = numpy.abs(less[key] - x)
        off = [float(e.max()), float(numpy.sqrt((e * e).mean()))]
        bounds[key] = {"err_fp32": off, "err_bf16": [1.0, 1.0], "rms": float(numpy.sqrt((x * x).mean()))}
    starts = numpy.cumsum([0] + [len(x) for x in ids]).astype(numpy.int32)
    padded = numpy.zeros((3, LIMIT), numpy.int32)
    mask = numpy.zeros((3, LIMIT), numpy.int32)
    for row, i in enumerate((2, 5, 9)):
        padded[row, :len(ids[i])] = ids[i]
        mask[row, :len(ids[i])] = 1
    write(folder + "/inputs.safetensors", {
        "ids": numpy.concatenate(ids).astype(numpy.int32), "offsets": starts, "batch.ids": padded,
        "batch.mask": mask, "batch.rows": numpy.array([2, 5, 9], numpy.int32)}, "I32")
    write(folder + "/expected.safetensors", want, "F32")
    similar = want["embedding"] @ want["embedding"].T
    write(folder + "/similarity.safetensors", {"similarity": similar}, "F32")
    with open(folder + "/case.json", "w", encoding="utf-8") as file:
        json.dump({"family": "encoders", "kind": "encoder", "texts": texts, "token_ids": ids,
                   "max_seq_length": LIMIT, "tensors": bounds}, file)


if __name__ == "__main__":
    for each in FAMILIES:
        case(f"{sys.argv[1]}/{each}", int(sys.argv[2]), each)
