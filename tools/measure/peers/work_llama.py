"""work_llama.py - a worker: a text model by llama.cpp; needs LLAMA_CPP_LIB_PATH and llama_cpp in PYTHONPATH.

usage: work_llama.py MODEL.gguf PROMPT.npy THREADS SEQUENCES; SEQUENCES 0: a frame reads 532 tokens and chooses the next one; else it is a
token for so many sequences behind them, chosen, too. A choice is the largest of the logits (numpy's argmax), as tectum's launches end
with. Its result: greedy tokens behind the prompt of the file.
"""
import ctypes
import re
import sys

from worker import serve, timed  # first: it keeps standard output

import llama_cpp as ll
import numpy as np

ROOM, TOKENS, READ = 256, 4, 532


class Text:
    def __init__(self, path, threads, sequences):
        model, params = ll.llama_model_default_params(), ll.llama_context_default_params()
        model.n_gpu_layers = 0
        self.model = ll.llama_model_load_from_file(path.encode(), model)
        params.n_ctx, params.n_batch, params.n_ubatch = 1024 + ROOM * max(1, sequences), 1024, 1024
        params.n_seq_max, params.n_threads, params.n_threads_batch, params.kv_unified = max(1, sequences), threads, threads, True
        self.context = ll.llama_init_from_model(self.model, params)
        self.memory = ll.llama_get_memory(self.context)
        self.batch = ll.llama_batch_init(1024, 0, 1)
        self.vocab = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(self.model))

    def decode(self, tokens, positions, sequences, wanted):
        b = self.batch
        b.n_tokens = len(tokens)
        for i, (token, at, sequence, want) in enumerate(zip(tokens, positions, sequences, wanted)):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = int(token), int(at), 1, want
            b.seq_id[i][0] = sequence
        if ll.llama_decode(self.context, b) != 0:
            sys.exit("work_llama: llama_decode has failed")

    def read(self, prompt):
        ll.llama_memory_clear(self.memory, True)
        n = len(prompt)
        self.decode(prompt, range(n), [0] * n, [0] * (n - 1) + [1])

    def best(self, row=-1):
        logits = ll.llama_get_logits_ith(self.context, row)
        return int(np.ctypeslib.as_array(ctypes.cast(logits, ctypes.POINTER(ctypes.c_float)), (self.vocab,)).argmax())

    def greedy(self, prompt, n):
        self.read(prompt)
        out = [self.best()]
        while len(out) < n:
            self.decode([out[-1]], [len(prompt) + len(out) - 1], [0], [1])
            out.append(self.best())
        return np.array([out])


def main():
    path, prompt, threads, sequences = sys.argv[1], np.load(sys.argv[2]).reshape(-1), int(sys.argv[3]), int(sys.argv[4])
    text = Text(path, threads, sequences)
    tokens, at = text.greedy(prompt, TOKENS), READ
    drawn = np.random.default_rng(1).integers(5, 16000, READ)
    text.read(drawn)
    for i in range(1, sequences):
        ll.llama_memory_seq_cp(text.memory, 0, i, -1, -1)

    def step():
        nonlocal at
        text.decode([5 + i for i in range(sequences)], [at] * sequences, range(sequences), [1] * sequences)
        for i in range(sequences):
            text.best(i)
        at += 1

    def first():
        text.read(drawn)
        text.best()
    frame = (lambda: timed(first)) if sequences == 0 else (lambda: timed(step))
    serve(lambda: (frame()[0], tokens), {"version": ll.__version__, "dtype": re.search("model_(.*).gguf", path)[1].replace("q", "Q")})


if __name__ == "__main__":
    main()
