"""A trained planner as it ships, in bf16: python export.py TRAINED OUT"""
import pathlib
import shutil
import sys

import torch

import model as planner
import tokenizer as bpe


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    planner.save(planner.load(source), out, torch.bfloat16, bpe.load(source).end)
    for name in ("tokenizer.json", "tokenizer_config.json", "training.json"):
        shutil.copy(source / name, out / name)
    print(f"{out}: {sum(f.stat().st_size for f in out.iterdir())} bytes")


if __name__ == "__main__":
    main()
