"""A trained checkpoint as it ships, in bf16: python export.py TRAINED OUT"""
import pathlib
import shutil
import sys

import torch

import checkpoint


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    (out / checkpoint.ASSET).parent.mkdir(parents=True, exist_ok=True)
    model, *_ = checkpoint.load(source)
    shutil.copy(source / "tokenizer.model", out / "tokenizer.model")
    checkpoint.save(out, model, checkpoint.statistics(source), torch.bfloat16)
    print(f"{out}: {sum(f.stat().st_size for f in out.rglob('*') if f.is_file())} bytes")


if __name__ == "__main__":
    main()
