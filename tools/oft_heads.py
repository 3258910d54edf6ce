#!/usr/bin/env python3
"""oft_heads.py - OpenVLA-OFT's heads from PyTorch's packaging to safetensors, without PyTorch.

usage: tools/oft_heads.py FOLDER

Reads action_head--*_checkpoint.pt and proprio_projector--*_checkpoint.pt of a checkpoint's folder and
writes action_head.safetensors and proprio_projector.safetensors beside them, which is where tectum
looks. A .pt file is a zip with a pickle in it, and a pickle is a program: this one is read by an
unpickler that knows tensors of plain numbers and nothing else, so nothing of the file is executed.
"""
import collections
import glob
import json
import os
import pickle
import struct
import sys
import zipfile

DTYPES = {"FloatStorage": ("F32", 4), "BFloat16Storage": ("BF16", 2), "HalfStorage": ("F16", 2),
          "DoubleStorage": ("F64", 8)}
PARTS = ("action_head", "proprio_projector")
MOST = 1 << 32  # bytes of a part


class Refused(Exception):
    pass


class Tensor:
    """Elements of a storage: (dtype, bytes of one, name of the storage), offset and shape."""

    def __init__(self, storage, offset, shape, stride, *_):
        step = 1
        for n, s in zip(reversed(shape), reversed(stride)):
            if n != 1 and s != step:
                raise Refused("a tensor of shape %s is not contiguous" % (shape,))
            step *= n
        self.storage, self.offset, self.shape, self.count = storage, offset, list(shape), step


class Reader(pickle.Unpickler):
    """Dictionaries, numbers, texts and tensors; every other name is refused."""

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return Tensor
        if module == "torch" and name in DTYPES:
            return name
        raise Refused("it wants %s.%s, which is no tensor of plain numbers" % (module, name))

    def persistent_load(self, pid):
        kind, dtype, key = pid[0], pid[1], pid[2]
        if kind != "storage" or dtype not in DTYPES or not str(key).isdigit():
            raise Refused("it has a storage of unknown kind")
        return DTYPES[dtype] + (str(key),)


def read(path):
    """Name to (dtype, shape, bytes)."""
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith("/data.pkl")]
        if len(names) != 1 or sum(i.file_size for i in archive.infolist()) > MOST:
            raise Refused("it is no PyTorch archive of one part")
        folder = names[0][:-len("data.pkl")]
        with archive.open(names[0]) as stream:
            state = Reader(stream, encoding="utf-8").load()
        if not isinstance(state, dict):
            raise Refused("it holds no dictionary of tensors")
        out = {}
        for name, t in state.items():
            if not isinstance(name, str) or not isinstance(t, Tensor):
                raise Refused("it holds more than tensors")
            dtype, size, key = t.storage
            data = archive.read(folder + "data/" + key)
            data = data[t.offset * size:(t.offset + t.count) * size]
            if len(data) != t.count * size:
                raise Refused("tensor '%s' is longer than its storage" % name)
            out[name[len("module."):] if name.startswith("module.") else name] = (dtype, t.shape, data)
        return out


def write(path, tensors):
    header, at = {}, 0
    for name in sorted(tensors):
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            out.write(tensors[name][2])
    os.replace(path + ".part", path)


def main(arguments):
    if len(arguments) != 2 or arguments[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    found = 0
    for part in PARTS:
        files = sorted(glob.glob(os.path.join(glob.escape(arguments[1]), part + "--*_checkpoint.pt")))
        if len(files) > 1:
            print("%s: %d files of this part; keep one" % (files[0], len(files)), file=sys.stderr)
            return 1
        for path in files:
            try:
                tensors = read(path)
            except (Refused, zipfile.BadZipFile, pickle.UnpicklingError, KeyError, EOFError,
                    ValueError, IndexError, AttributeError, TypeError) as why:
                print("%s: %s" % (path, why), file=sys.stderr)
                return 1
            target = os.path.join(arguments[1], part + ".safetensors")
            write(target, tensors)
            print("%s: %d tensors" % (target, len(tensors)))
            found += 1
    if not found:
        print("%s: no action_head--*_checkpoint.pt or proprio_projector--*_checkpoint.pt"
              % arguments[1], file=sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
