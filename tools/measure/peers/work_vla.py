"""work_vla.py - a worker: SmolVLA by vla.cpp, through its C interface (include/vla.h, ABI version 1).

usage: work_vla.py LIBRARY MODEL.gguf INPUTS.npz CAMERAS f32|bf16; VLA_N_THREADS: its threads.
"""
import ctypes as c
import json
import os
import sys
import tempfile

from worker import serve, timed  # first: it keeps standard output

import numpy as np


class Image(c.Structure):
    _fields_ = [("data", c.c_void_p), ("w", c.c_int32), ("h", c.c_int32), ("format", c.c_int32)]


class Inputs(c.Structure):
    _fields_ = [("images", c.POINTER(Image)), ("n_images", c.c_int32), ("img_emb", c.c_void_p), ("n_img_views", c.c_int32),
                ("lang_tokens", c.c_void_p), ("n_lang", c.c_int32), ("state", c.c_void_p), ("noise", c.c_void_p),
                ("attention_mask", c.c_void_p), ("attention_mask_n", c.c_int32), ("timing_detail", c.c_int32)]


def main():
    library, model, inputs, cameras, dtype = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
    lib = c.CDLL(library)
    if lib.vla_abi_version() != 1:
        sys.exit("work_vla: another version of vla.h than 1")
    lib.vla_model_load.restype = c.c_void_p
    lib.vla_model_load.argtypes = [c.c_char_p] * 3
    lib.vla_predict.argtypes = [c.c_void_p, c.POINTER(Inputs), c.POINTER(c.POINTER(c.c_float)), c.POINTER(c.c_int64)]
    lib.vla_free_actions.argtypes = [c.POINTER(c.c_float)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"runtime": {"weight_dtype": dtype}}, config)
        config.flush()
        handle = lib.vla_model_load(b"", model.encode(), config.name.encode())
    if not handle:
        sys.exit(f"work_vla: {model} is not loaded")
    given = dict(np.load(inputs))
    pictures = [np.ascontiguousarray(given[f"picture{i}"]) for i in range(cameras)]
    images = (Image * cameras)(*(Image(p.ctypes.data, p.shape[1], p.shape[0], 0) for p in pictures))
    state, noise = np.zeros(32, np.float32), np.ascontiguousarray(given["noise"])
    state[:given["state"].size] = given["state"]
    tokens = given["tokens"]
    one = Inputs(images=images, n_images=cameras, lang_tokens=tokens.ctypes.data, n_lang=tokens.size, state=state.ctypes.data,
                 noise=noise.ctypes.data)

    def predict():
        out, n = c.POINTER(c.c_float)(), c.c_int64()
        if lib.vla_predict(handle, c.byref(one), c.byref(out), c.byref(n)) != 0:
            sys.exit("work_vla: no actions")
        actions = np.ctypeslib.as_array(out, (n.value,)).reshape(50, -1).copy()
        lib.vla_free_actions(out)
        return actions

    serve(lambda: timed(predict), {"dtype": dtype, "threads": os.environ.get("VLA_N_THREADS")})


if __name__ == "__main__":
    main()
