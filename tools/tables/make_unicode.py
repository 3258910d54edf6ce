#!/usr/bin/env python3
"""Make base/text/tables/ from tests/golden/tokenizers/codepoints.json.

    python3 tools/tables/make_unicode.py tests/golden/tokenizers/codepoints.json base/text/tables

classes.inc: two-stage table of class bits a code point (order of BITS below).
bare.inc: the code points that lower-casing and dropping accents changes, and their text in UTF-8.
"""
import json
import sys

BITS = ["regex_L", "regex_N", "regex_s", "bert_removed", "bert_to_space", "bert_padded_cjk",
        "bert_split_as_punctuation"]
BLOCK = 128


def classes(points):
    flags = bytearray(0x110000)
    for bit, name in enumerate(BITS):
        for first, last in points[name]:
            for code in range(first, last + 1):
                flags[code] |= 1 << bit
    blocks, index = {}, []
    for start in range(0, len(flags), BLOCK):
        block = bytes(flags[start:start + BLOCK])
        index.append(blocks.setdefault(block, len(blocks)))
    return list(blocks), index


def rows(values, width, form):
    for i in range(0, len(values), width):
        yield "    " + ", ".join(form(v) for v in values[i:i + width]) + ","


def write_classes(points, path):
    blocks, index = classes(points)
    lines = ["/* classes.inc - class bits of every code point; made by tools/tables/make_unicode.py. */",
             f"static const unsigned short class_index[{len(index)}] = {{",
             *rows(index, 20, str), "};",
             f"static const unsigned char class_block[{len(blocks)}][{BLOCK}] = {{"]
    for block in blocks:
        lines += ["    {", *("    " + r for r in rows(list(block), 20, str)), "    },"]
    lines.append("};")
    open(path, "w").write("\n".join(lines) + "\n")


def write_bare(points, path):
    def text(s):
        return '"' + "".join(f"\\{b:03o}" for b in s.encode()) + '"'
    pairs = sorted(points["bert_mapped"])
    lines = ["/* bare.inc - lower case without accents; made by tools/tables/make_unicode.py. */",
             "static const struct {", "    unsigned code;", "    const char *text;",
             f"}} bare[{len(pairs)}] = {{", *rows(pairs, 4, lambda p: f"{{{p[0]}, {text(p[1])}}}"), "};"]
    open(path, "w").write("\n".join(lines) + "\n")


def main():
    points = json.load(open(sys.argv[1], encoding="utf-8"))
    write_classes(points, sys.argv[2] + "/classes.inc")
    write_bare(points, sys.argv[2] + "/bare.inc")


main()
