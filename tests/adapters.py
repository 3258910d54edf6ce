#!/usr/bin/env python3
"""adapters.py - a small LoRA adapter of a checkpoint as PEFT saves it, and the checkpoint with it merged.
usage: adapters.py CHECKPOINT/model.safetensors ADAPTER_FOLDER MERGED.safetensors BASE_NAME

Factors are multiples of 1/16, so that their products are exact and a merged tensor is rounded once."""
import json
import os
import random
import struct
import sys



def load(path):
    """Tensors of a file by name: dtype, shape, values."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    tensors = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        raw = data[begin:end]
        if t["dtype"] == "F32":
            values = list(struct.unpack(f"<{len(raw) // 4}f", raw))
        else:
            assert t["dtype"] == "BF16", t["dtype"]
            halves = struct.unpack(f"<{len(raw) // 2}H", raw)
            values = list(struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(h << 16 for h in halves))))
        tensors[name] = (t["shape"], values)
    return tensors


def store(path, tensors):
    header, blob = {}, b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def main(model, folder, merged, base):
    rng = random.Random(7)
    tensors, adapter = load(model), {}
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 2, "use_rslora": True, "fan_in_fan_out": False,
              "bias": "none", "target_modules": ["q_proj", "v_proj"], "modules_to_save": ["action_out_proj"],
              "rank_pattern": {"v_proj": 1}, "alpha_pattern": {"v_proj": 0.5}, "base_model_name_or_path": base}
    for name in sorted(tensors):
        shape, values = tensors[name]
        module = name.removesuffix(".weight")
        word = module.rsplit(".", 1)[-1]
        if word in ("q_proj", "v_proj") and name != module:
            rank, scale = (4, 1.0) if word == "q_proj" else (1, 0.5)
            rows, cols = shape
            a = [rng.randint(-4, 4) / 16 for _ in range(rank * cols)]
            b = [rng.randint(-4, 4) / 16 for _ in range(rows * rank)]
            adapter[f"base_model.model.{module}.lora_A.weight"] = ([rank, cols], a)
            adapter[f"base_model.model.{module}.lora_B.weight"] = ([rows, rank], b)
            values = [values[i * cols + j] + scale * sum(b[i * rank + k] * a[k * cols + j] for k in range(rank))
                      for i in range(rows) for j in range(cols)]
        elif "action_out_proj" in name:
            values = [rng.uniform(-0.1, 0.1) for _ in values]
            adapter[f"base_model.model.{name}"] = (shape, values)
        tensors[name] = (shape, values)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "adapter_config.json"), "w") as file:
        json.dump(config, file)
    store(os.path.join(folder, "adapter_model.safetensors"), adapter)
    store(merged, tensors)


main(*sys.argv[1:])
