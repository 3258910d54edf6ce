"""A trained checkpoint as it ships, in bf16: python export.py TRAINED OUT"""
import json
import pathlib
import shutil
import sys

import torch

import checkpoint


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    set_ = json.loads((source / "config.json").read_text())["norm_stats"][checkpoint.SET]
    shutil.copy(source / "tokenizer.model", out / "tokenizer.model")
    checkpoint.save(out, checkpoint.load(source), set_["num_trajectories"], set_["num_transitions"], torch.bfloat16)
    print(f"{out}: {sum(f.stat().st_size for f in out.rglob('*') if f.is_file())} bytes")


if __name__ == "__main__":
    main()
