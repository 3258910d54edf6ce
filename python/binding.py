"""binding.py - the declarations of headers for cffi, as a Python module that needs no C compiler.

usage: binding.py VERSION OUT.py HEADER...

A header is the one source: what it declares is what Python sees, and a struct cannot have one
layout there and another one here.
"""

import os
import re
import sys
import tempfile

import cffi


def declarations(header):
    """What cffi's parser takes of the header: no comments, no preprocessor, no attributes."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    return text.replace("TECTUM_API ", "")


def main(version, out, *headers):
    ffi = cffi.FFI()
    for header in headers:
        with open(header, encoding="utf-8") as file:
            ffi.cdef(declarations(file.read()))
    ffi.set_source("tectum._binding", None)
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "_binding.py")
        ffi.emit_python_code(made)
        with open(made, encoding="utf-8") as file:
            text = file.read()
    with open(out, "w", encoding="utf-8") as file:
        file.write("# _binding.py - the declarations of the headers, made by python/binding.py\n")
        file.write(f"{text}\nVERSION = {version!r}\n")


main(*sys.argv[1:])
