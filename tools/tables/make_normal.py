#!/usr/bin/env python3
"""Make base/text/tables/normal.inc: what the normalizers of the tokenizers package do that utf8proc does not.

    python3 tools/tables/make_normal.py base/text/tables

It asks the package itself (pip install tokenizers==0.22.2) about every code point, as its tables are of
several ages of Unicode, and libutf8proc, whose answers are used wherever they are the same.
"""
import ctypes
import sys

from tokenizers import normalizers

CODES = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
utf8proc = ctypes.CDLL("libutf8proc.so.2")
DECOMPOSE, COMPAT = 1 << 4, 1 << 2


def ranges(codes):
    out = []
    for code in codes:
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return out


def dropped(step):
    return [c for c in CODES if step.normalize_str(chr(c)) == ""]


def decomposed(code, options):
    parts, boundary = (ctypes.c_int32 * 32)(), ctypes.c_int(0)
    n = utf8proc.utf8proc_decompose_char(code, parts, 32, options, ctypes.byref(boundary))
    return "".join(chr(parts[i]) for i in range(n))


def whole():
    """Code points that came after the reference's tables, and stay as they are."""
    for name, options in (("NFD", DECOMPOSE), ("NFKD", DECOMPOSE | COMPAT)):
        step = getattr(normalizers, name)()
        for code in CODES:
            want, got = step.normalize_str(chr(code)), decomposed(code, options)
            if want != got:
                assert want == chr(code), (name, hex(code), want, got)
                yield code


def lower():
    step = normalizers.Lowercase()
    for code in CODES:
        want = step.normalize_str(chr(code))
        if len(want) == 1 and ord(want) != utf8proc.utf8proc_tolower(code):
            yield code, ord(want)


def rows(values, form):
    values = [form(*v) for v in values]
    for i in range(0, len(values), 5):
        yield "    " + ", ".join(values[i:i + 5]) + ","


def table(name, what, values):
    values = list(values)
    return [f"/* {what} */", f"static const struct range {name}[{len(values)}] = {{",
            *rows(values, "{{0x{:X}, 0x{:X}}}".format), "};"]


def main():
    nmt, bert = normalizers.Nmt(), normalizers.BertNormalizer(False, False, True, False)
    spaced = [c for c in CODES if c != 32 and nmt.normalize_str(chr(c)) == " "]
    lines = ["/* normal.inc - where normalizers of tokenizer.json have other tables than utf8proc; made by",
             " * tools/tables/make_normal.py. */",
             *table("marks", "Combining marks that StripAccents drops.",
                    ranges(dropped(normalizers.StripAccents()))),
             *table("bert_marks", "Marks that BertNormalizer drops with strip_accents.", ranges(dropped(bert))),
             *table("whole", "Not decomposed: newer than the reference's tables.", ranges(sorted(set(whole())))),
             *table("late_lower", "Capitals newer than utf8proc's tables, and their small letters.", lower()),
             *table("nmt_dropped", "What Nmt drops.", ranges(dropped(nmt))),
             *table("nmt_spaces", "What Nmt makes a space.", ranges(spaced))]
    with open(sys.argv[1] + "/normal.inc", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


main()
