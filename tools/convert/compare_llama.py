#!/usr/bin/env python3
"""compare_llama.py - greedy texts of SmolLM2 by tectum and by llama.cpp, token for token.

usage: tools/convert/compare_llama.py GGUF [--tectum PROGRAM] [--folder build/smollm2] [--tokens 64]
       [--dtype f32|bf16] [--prompts FILE]

GGUF is the file that FOLDER was made from. llama.cpp first writes its weights as float32, so that
both programs multiply by the same values, and keeps keys and values in float32; it runs as the
module `llama_cpp`, which tools/convert/compare_llama.sh installs. Prints one line a prompt, for
texts that part the distance of llama.cpp's two best logits there, and ends with the counts; the exit
status is 1 where two texts part at a place that is no tie within 1e-3.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile

import llama_cpp
import numpy

SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
TIE = 1e-3


def as_float32(gguf, folder):
    """The path of the same weights as float32."""
    out = os.path.join(folder, "float32.gguf")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_ALL_F32
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(gguf.encode(), out.encode(), ctypes.byref(params)):
        sys.exit(f"compare_llama: llama.cpp cannot write {gguf} as float32")
    return out


class Llama:
    """Greedy decoding by llama.cpp."""

    def __init__(self, path):
        f32 = llama_cpp.GGML_TYPE_F32
        self.model = llama_cpp.Llama(path, n_ctx=1024, n_batch=1024, n_threads=2, type_k=f32, type_v=f32, flash_attn=False,
                                     verbose=False)

    def logits(self):
        p = llama_cpp.llama_get_logits_ith(self.model.ctx, -1)
        return numpy.ctypeslib.as_array(p, shape=(self.model.n_vocab(),))

    def text(self, prompt, limit):
        """Tokens, and the distance of the two best logits before each."""
        turn = f"{SYSTEM}<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        self.model.reset()
        self.model.eval(self.model.tokenize(turn.encode(), add_bos=False, special=True))
        tokens, gaps = [], []
        for _ in range(limit):
            logits = self.logits()
            second, first = numpy.partition(logits, -2)[-2:]
            tokens.append(int(logits.argmax()))
            gaps.append(float(first - second))
            if tokens[-1] == 2:
                break
            self.model.eval([tokens[-1]])
        return tokens, gaps


def tectum(program, folder, dtype, prompts, limit, scratch):
    """Tokens of each prompt, in their order."""
    inputs = os.path.join(scratch, "prompts.jsonl")
    with open(inputs, "w") as f:
        f.writelines(json.dumps({"prompt": p}) + "\n" for p in prompts)
    out = subprocess.run([program, "run", "pipelines/smollm2_chat.lua", "--weights", folder, "--inputs", inputs, "--dtype", dtype,
                          "--drain", "--format", "json", "--set", f"nodes.answer.max_tokens={limit}"],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    texts = {}
    for line in out.splitlines():
        for part in json.loads(line).get("text", {}).get("answer", []):
            texts.setdefault(part["request"], []).extend(part["tokens"])
    return [texts[i] for i in sorted(texts)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf")
    parser.add_argument("--tectum", default="build/release/tectum")
    parser.add_argument("--folder", default="build/smollm2")
    parser.add_argument("--prompts", default="tools/convert/prompts.txt")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    a = parser.parse_args()
    prompts = [line.rstrip("\n") for line in open(a.prompts)]
    with tempfile.TemporaryDirectory() as scratch:
        ours = tectum(a.tectum, a.folder, a.dtype, prompts, a.tokens, scratch)
        llama = Llama(as_float32(a.gguf, scratch))
        theirs = [llama.text(p, a.tokens) for p in prompts]
    assert len(ours) == len(prompts)
    same = tokens = ties = 0
    for prompt, own, (other, gaps) in zip(prompts, ours, theirs):
        at = next((i for i, (x, y) in enumerate(zip(own, other)) if x != y), min(len(own), len(other)))
        tokens += at
        if own == other:
            same += 1
            print(f"equal  {len(own):3d} tokens              {prompt}")
            continue
        gap = gaps[at] if at < len(gaps) else float("inf")
        ties += gap < TIE
        print(f"parts  {at:3d} of {len(other):3d}, gap {gap:.5f} {prompt}")
    print(f"{same} of {len(prompts)} texts equal, {tokens} tokens before the first difference, {ties} parted at a tie")
    return 0 if same + ties == len(prompts) else 1


if __name__ == "__main__":
    sys.exit(main())
