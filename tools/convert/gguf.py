#!/usr/bin/env python3
"""gguf.py - a GGUF file of a Llama-shaped text model to a folder in Hugging Face's layout.

usage: tools/convert/gguf.py MODEL.gguf FOLDER

Writes config.json, generation_config.json, tokenizer.json and model.safetensors (float32: the values
that the quantised weights stand for, exactly). Needs numpy. The layout of the file is that of
ggml's docs/gguf.md; blocks of weights are those of ggml-common.h. llama.cpp's converter reorders
the rows of q and k for its rotation of neighbours; here they are put back.
"""
import json
import os
import struct
import sys

import numpy

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
F32, F16, Q4_0, Q4_1, Q8_0, BF16 = 0, 1, 2, 3, 8, 30
# Bytes of a block, values of a block.
BLOCKS = {F32: (4, 1), F16: (2, 1), BF16: (2, 1), Q4_0: (18, 32), Q4_1: (20, 32), Q8_0: (34, 32)}
# Of the names of tensors, GGUF's and Hugging Face's.
LAYER = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
         "ffn_norm": "post_attention_layernorm"}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
# Byte-level BPE whose words are cut as SmolLM2 cuts them.
SPLITS = {"smollm": [{"type": "Digits", "individual_digits": True},
                     {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}


class Refused(Exception):
    """The file is damaged, or holds what this script does not know."""


class Reader:
    """Values of a GGUF file, one after the other; never past its end."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0

    def take(self, size):
        if size < 0 or self.at + size > len(self.data):
            raise Refused(f"the file ends at byte {len(self.data)}, in the middle of a value")
        self.at += size
        return self.data[self.at - size:self.at]

    def scalar(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self):
        return self.take(self.scalar("Q")).decode("utf-8")

    def value(self, kind, depth=0):
        if kind == 8:
            return self.text()
        if kind == 9 and depth < 2:
            inner, count = self.scalar("I"), self.scalar("Q")
            if count > len(self.data):
                raise Refused(f"a list of {count} values in a file of {len(self.data)} bytes")
            return [self.value(inner, depth + 1) for _ in range(count)]
        if kind not in SCALARS:
            raise Refused(f"a value of type {kind}, which is not known")
        return self.scalar(SCALARS[kind])


def read(path):
    """The facts of a file, and its tensors: name to (shape, type, first byte)."""
    r = Reader(path)
    if r.take(4) != b"GGUF" or r.scalar("I") not in (2, 3):
        raise Refused("not a GGUF file of version 2 or 3")
    n_tensors, n_facts = r.scalar("Q"), r.scalar("Q")
    facts, tensors = {}, {}
    for _ in range(n_facts):
        name = r.text()
        facts[name] = r.value(r.scalar("I"))
    for _ in range(n_tensors):
        name, rank = r.text(), r.scalar("I")
        shape = [r.scalar("Q") for _ in range(rank)][::-1]
        tensors[name] = (shape, r.scalar("I"), r.scalar("Q"))
    align = facts.get("general.alignment", 32)
    begin = (r.at + align - 1) // align * align
    return facts, {name: (s, k, begin + o) for name, (s, k, o) in tensors.items()}, r.data


def widened(name, shape, kind, begin, data):
    """A tensor as float32."""
    if kind not in BLOCKS:
        raise Refused(f"tensor {name}: weights of type {kind} are not known")
    size, per = BLOCKS[kind]
    count = int(numpy.prod(shape, dtype=numpy.int64))
    end = begin + count // per * size
    if count % per or end > len(data):
        raise Refused(f"tensor {name}: {count} values do not fit the file")
    raw = numpy.frombuffer(data, numpy.uint8, end - begin, begin).reshape(-1, size)
    if kind == F32:
        return raw.view("<f4").reshape(shape)
    if kind == F16:
        return raw.view("<f2").astype(numpy.float32).reshape(shape)
    if kind == BF16:
        return (raw.view("<u2").astype(numpy.uint32) << 16).view(numpy.float32).reshape(shape)
    scale = raw[:, :2].copy().view("<f2").astype(numpy.float32)
    if kind == Q8_0:
        return (scale * raw[:, 2:].view(numpy.int8)).astype(numpy.float32).reshape(shape)
    packed = raw[:, size - 16:]
    nibbles = numpy.concatenate([packed & 15, packed >> 4], axis=1).astype(numpy.float32)
    if kind == Q4_0:
        return (scale * (nibbles - 8)).astype(numpy.float32).reshape(shape)
    least = raw[:, 2:4].copy().view("<f2").astype(numpy.float32)
    return (scale * nibbles + least).astype(numpy.float32).reshape(shape)


def in_halves(rows, heads):
    """Rows of q or k with the pairs of a rotation half a head apart, as Hugging Face has them."""
    dim = rows.shape[0] // heads
    return rows.reshape(heads, dim // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def renamed(name):
    part, _, end = name.rpartition(".")
    if part in WHOLE:
        return f"{WHOLE[part]}.{end}"
    pieces = part.split(".")
    if len(pieces) == 3 and pieces[0] == "blk" and pieces[2] in LAYER:
        return f"model.layers.{int(pieces[1])}.{LAYER[pieces[2]]}.{end}"
    raise Refused(f"tensor {name} is not one of a Llama")


def config_of(facts, tied):
    width, heads = facts["llama.embedding_length"], facts["llama.attention.head_count"]
    return {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
        "hidden_size": width, "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"], "num_attention_heads": heads,
        "num_key_value_heads": facts.get("llama.attention.head_count_kv", heads),
        "head_dim": facts.get("llama.attention.key_length", width // heads),
        "max_position_embeddings": facts["llama.context_length"],
        "rms_norm_eps": float(f"{facts['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "rope_theta": float(facts.get("llama.rope.freq_base", 10000.0)), "rope_scaling": None,
        "vocab_size": facts.get("llama.vocab_size", len(facts["tokenizer.ggml.tokens"])),
        "tie_word_embeddings": tied, "bos_token_id": facts.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": facts.get("tokenizer.ggml.eos_token_id"), "torch_dtype": "float32",
    }


def tokenizer_of(facts):
    kind, cut = facts.get("tokenizer.ggml.model"), facts.get("tokenizer.ggml.pre")
    if kind != "gpt2" or cut not in SPLITS:
        raise Refused(f"a tokenizer of kind {kind}, words cut by {cut}: not known")
    tokens, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    added = [{"id": i, "content": t, "special": True, "normalized": False, "lstrip": False,
              "rstrip": False, "single_word": False} for i, t in enumerate(tokens) if kinds[i] == 3]
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": None, "pre_tokenizer": {"type": "Sequence", "pretokenizers": SPLITS[cut]},
            "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "vocab": {t: i for i, t in enumerate(tokens)},
                      "merges": facts["tokenizer.ggml.merges"]}}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name in sorted(tensors):
        size = tensors[name].nbytes
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            file.write(tensors[name].tobytes())


def convert(path, folder):
    facts, tensors, data = read(path)
    if facts.get("general.architecture") != "llama":
        raise Refused(f"architecture {facts.get('general.architecture')}: only llama is known")
    heads = {"attn_q": facts["llama.attention.head_count"],
             "attn_k": facts.get("llama.attention.head_count_kv", facts["llama.attention.head_count"])}
    out = {}
    for name, (shape, kind, begin) in tensors.items():
        rows = numpy.ascontiguousarray(widened(name, shape, kind, begin, data))
        part = name.split(".")[-2]
        out[renamed(name)] = numpy.ascontiguousarray(in_halves(rows, heads[part])) if part in heads else rows
    os.makedirs(folder, exist_ok=True)
    config = config_of(facts, "lm_head.weight" not in out)
    files = {"config.json": config, "tokenizer.json": tokenizer_of(facts),
             "generation_config.json": {"eos_token_id": config["eos_token_id"]}}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False)
    write_tensors(os.path.join(folder, "model.safetensors"), out)
    print(f"{folder}: {len(out)} tensors, {sum(t.size for t in out.values())} parameters")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    try:
        convert(sys.argv[1], sys.argv[2])
    except (Refused, OSError, KeyError, UnicodeDecodeError, struct.error) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        sys.exit(f"gguf.py: {sys.argv[1]}: {what}")
