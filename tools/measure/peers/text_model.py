"""text_model.py - a text model of Gemma-2B's shape with random bf16 weights: for tectum, and the same values as GGUF for llama.cpp.

usage: text_model.py FOLDER GGUF_PY LAYERS
FOLDER gets config.json and model.safetensors of a Llama (18 layers in full: 2048 wide, 8 heads x 256, one of keys and values, 16384 in
the MLP, 256000 tokens, the head tied), and model_bf16.gguf. Llama's layers are Gemma's but for the MLP's function and one factor; both programs
have their shortest path for them.
"""
import json
import pathlib
import sys

import numpy as np

WIDTH, HEADS, HEAD, MLP, VOCAB, CONTEXT = 2048, 8, 256, 16384, 256000, 8192


def shapes(layers):
    out = {"model.embed_tokens.weight": (VOCAB, WIDTH), "model.norm.weight": (WIDTH,)}
    for i in range(layers):
        p = f"model.layers.{i}."
        out |= {p + "self_attn.q_proj.weight": (HEADS * HEAD, WIDTH), p + "self_attn.k_proj.weight": (HEAD, WIDTH),
                p + "self_attn.v_proj.weight": (HEAD, WIDTH), p + "self_attn.o_proj.weight": (WIDTH, HEADS * HEAD),
                p + "mlp.gate_proj.weight": (MLP, WIDTH), p + "mlp.up_proj.weight": (MLP, WIDTH), p + "mlp.down_proj.weight": (WIDTH, MLP),
                p + "input_layernorm.weight": (WIDTH,), p + "post_attention_layernorm.weight": (WIDTH,)}
    return out


def values(layers):
    """Name -> bf16 numbers as uint16: normal, 0.02; norms are 1."""
    pool = (np.random.default_rng(1).standard_normal(1 << 24, np.float32) * 0.02).view(np.uint32) >> 16
    pool, at, out = pool.astype(np.uint16), 0, {}
    for name, shape in shapes(layers).items():
        n = int(np.prod(shape))
        out[name] = np.full(n, 0x3f80, np.uint16) if len(shape) == 1 else np.resize(np.roll(pool, at), n)
        out[name], at = out[name].reshape(shape), at + 7919
    return out


def rotated_in_pairs(w):
    """llama.cpp rotates neighbours, Hugging Face's layout halves: rows of q and k in the former's order."""
    return w.reshape(-1, 2, HEAD // 2, WIDTH).swapaxes(1, 2).reshape(w.shape)


NAMES = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "post_attention_layernorm": "ffn_norm", "input_layernorm": "attn_norm",
         "model.layers.": "blk."}


def write_gguf(path, tensors, layers):
    import gguf
    w = gguf.GGUFWriter(str(path), "llama")
    w.add_block_count(layers)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(MLP)
    w.add_head_count(HEADS)
    w.add_head_count_kv(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_freq_base(10000.0)
    w.add_rope_dimension_count(HEAD)
    w.add_vocab_size(VOCAB)
    w.add_tokenizer_model("no_vocab")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    for name, value in tensors.items():
        if "q_proj" in name or "k_proj" in name:
            value = rotated_in_pairs(value)
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        if value.ndim == 1:
            w.add_tensor(name, (value.astype(np.uint32) << 16).view(np.float32))
        else:
            w.add_tensor(name, np.ascontiguousarray(value).view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_safetensors(path, tensors):
    """numpy has no bf16: the header is written here."""
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for value in tensors.values():
            f.write(np.ascontiguousarray(value).data)


def main():
    folder, layers = pathlib.Path(sys.argv[1]), int(sys.argv[3])
    sys.path.insert(0, sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    tensors = values(layers)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": MLP,
              "num_hidden_layers": layers, "num_attention_heads": HEADS, "num_key_value_heads": 1, "head_dim": HEAD, "vocab_size": VOCAB,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True, "max_position_embeddings": CONTEXT,
              "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    write_safetensors(folder / "model.safetensors", tensors)
    write_gguf(folder / "model_bf16.gguf", tensors, layers)


if __name__ == "__main__":
    main()
