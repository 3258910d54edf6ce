# int4_codes.py - the 4-bit weights of a file that `tectum pack` wrote, against what numpy makes of the same checkpoint: every
# scale, zero and code, bit for bit. Written after kernels/int4.h alone: the form of a panel, and how a group is rounded.
# usage: int4_codes.py FILE.safetensors FILE.weights KEPT: a pattern of names that stay as the pipeline's dtype says.
import json
import re
import struct
import sys

import numpy as np

f32 = np.float32
GROUP, LINE, PANEL, DEEP = 64, 64, 16, 8
READ = {"F32": lambda b: np.frombuffer(b, f32), "F16": lambda b: np.frombuffer(b, np.float16).astype(f32),
        "BF16": lambda b: (np.frombuffer(b, np.uint16).astype(np.uint32) << 16).view(f32)}


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and len(t["shape"]) == 2:
            first, last = t["data_offsets"]
            yield name, READ[t["dtype"]](data[8 + size + first:8 + size + last]).reshape(t["shape"])


def rounded(w):
    """Scales as float16 [rows], zeros [rows] and codes [rows, count] of one group of each row."""
    low, high = np.minimum(w.min(1), f32(0)), np.maximum(w.max(1), f32(0))
    least = None
    for part in range(32, 19, -1):
        p = f32(part) / f32(32)
        scale = ((high * p - low * p) / f32(15)).astype(np.float16)
        s = scale.astype(f32)
        per = np.divide(f32(1), s, out=np.zeros_like(s), where=s > 0)
        zero = np.clip(np.rint(-(low * p) * per), f32(0), f32(15))
        code = np.clip(np.rint(w * per[:, None] + zero[:, None]), f32(0), f32(15))
        left = w - (code - zero[:, None]) * s[:, None]
        squares = (left * left).reshape(len(w), -1, DEEP)
        chains = np.zeros((len(w), DEEP), f32)
        for i in range(squares.shape[1]):
            chains = chains + squares[:, i]
        while chains.shape[1] > 1:
            chains = chains[:, 0::2] + chains[:, 1::2]
        error = chains[:, 0]
        assert error.dtype == code.dtype == f32
        if least is None:
            least, best = error, [scale, zero, code]
        better = error < least
        least = np.where(better, error, least)
        best = [np.where(better.reshape((-1,) + (1,) * (new.ndim - 1)), new, old) for new, old in zip([scale, zero, code], best)]
    return best


def packed(w):
    rows, k = w.shape
    w = np.concatenate([w, np.zeros((-rows % PANEL, k), f32)])
    panels = len(w) // PANEL
    lines = []
    for at in range(0, k, GROUP):
        scale, zero, code = rounded(w[:, at:at + GROUP])
        scale[rows:], zero[rows:] = 0, 0
        head = np.zeros((panels, LINE), np.uint8)
        head[:, :32] = scale.reshape(panels, PANEL).view(np.uint8)
        head[:, 32:48] = zero.astype(np.uint8).reshape(panels, PANEL)
        lines.append(head)
        for nibbles in np.moveaxis(code.astype(np.uint32).reshape(len(w), -1, DEEP), 1, 0):
            word = sum(nibbles[:, j] << np.uint32(4 * j) for j in range(DEEP)).astype(np.uint32)
            word[rows:] = 0
            lines.append(word.reshape(panels, PANEL).view(np.uint8))
    return np.stack(lines, 1).tobytes()


with open(sys.argv[2], "rb") as file:
    weights = file.read()
there = kept = 0
for name, w in tensors(sys.argv[1]):
    quantised = w.shape[1] % DEEP == 0 and not re.search(sys.argv[3], name)
    found = w.shape[1] % DEEP == 0 and packed(w) in weights
    if found != quantised:
        sys.exit("%s %s %s: %s in 4 bits" % (name, list(w.shape), w.dtype, "is" if found else "is not, as numpy makes them,"))
    there, kept = there + found, kept + (not found)
print("%d matrices in 4 bits, %d as they were" % (there, kept))
sys.exit(there == 0)
