#!/usr/bin/env python3
"""Make base/text/tables/normal.inc: which code points the normalizers of the tokenizers package change.

    python3 tools/tables/make_normal.py base/text/tables

It asks the package itself (pip install tokenizers==0.22.2) about every code point, as its tables are of
several ages of Unicode. What a code point's parts are utf8proc knows, of any version: they never change.
"""
import sys

from tokenizers import normalizers

CODES = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]


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


def decomposed():
    """Code points that a form takes apart; others have no parts, whatever utf8proc's newer tables say."""
    forms = normalizers.NFD(), normalizers.NFKD()
    return [c for c in CODES if any(form.normalize_str(chr(c)) != chr(c) for form in forms)]


def lower():
    """Runs of capitals, each or every second code point, and how far behind them their small letters are."""
    step, out = normalizers.Lowercase(), []
    for code in CODES:
        small = step.normalize_str(chr(code))
        if len(small) != 1 or ord(small) == code:
            continue
        far = ord(small) - code
        if out and out[-1][2] == far and code - out[-1][1] in (out[-1][3] or 1, out[-1][3] or 2):
            out[-1][3] = code - out[-1][1]
            out[-1][1] = code
        else:
            out.append([code, code, far, 0])
    return [(first, last, far, step or 1) for first, last, far, step in out]


def rows(values, form):
    values = [form(*v) for v in values]
    for i in range(0, len(values), 5):
        yield "    " + ", ".join(values[i:i + 5]) + ","


def table(name, what, values, kind="range", form="{{0x{:X}, 0x{:X}}}"):
    return [f"/* {what} */", f"static const struct {kind} {name}[{len(values)}] = {{",
            *rows(values, form.format), "};"]


def main():
    nmt, bert = normalizers.Nmt(), normalizers.BertNormalizer(False, False, True, False)
    spaced = [c for c in CODES if c != 32 and nmt.normalize_str(chr(c)) == " "]
    lines = ["/* normal.inc - what normalizers of tokenizer.json change; made by tools/tables/make_normal.py. */",
             *table("marks", "Combining marks that StripAccents drops.",
                    ranges(dropped(normalizers.StripAccents()))),
             *table("bert_marks", "Marks that BertNormalizer drops with strip_accents.", ranges(dropped(bert))),
             *table("decomposed", "What has a decomposition, of either kind.", ranges(decomposed())),
             *table("capitals", "What Lowercase makes one other letter of.", lower(), "capitals",
                    "{{{{0x{:X}, 0x{:X}}}, {}, {}}}"),
             *table("nmt_dropped", "What Nmt drops.", ranges(dropped(nmt))),
             *table("nmt_spaces", "What Nmt makes a space.", ranges(spaced))]
    with open(sys.argv[1] + "/normal.inc", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


main()
