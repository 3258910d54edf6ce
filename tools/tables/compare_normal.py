#!/usr/bin/env python3
"""Compare the normalizers of tokenizer.json with those of the tokenizers package, over random texts.

    python3 tools/tables/compare_normal.py build/release/tectum [SEED] [TEXTS]

Each normalizer stands before a model of bytes, so that `tectum tokenize` prints what it made; besides the
random texts every 37th code point is one. Prints how many texts differ, and ends with 1 where one does.
"""
import json
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import Regex, Tokenizer, decoders, models, normalizers as n, pre_tokenizers


def cases():
    quotes = [n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents()]
    yield from ((x, getattr(n, x)()) for x in "NFD NFC NFKD NFKC Lowercase StripAccents Nmt".split())
    yield "albert", n.Sequence([*quotes, n.Lowercase()])
    yield "xlnet", n.Sequence([*quotes, n.Replace(Regex(" {2,}"), " ")])
    yield "nmt_nfkc", n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " ")])
    for bits in range(8):
        clean, chinese, lower = (bool(bits & 1 << i) for i in range(3))
        for strip in (None, False, True):
            yield f"bert {clean} {chinese} {strip} {lower}", n.BertNormalizer(clean, chinese, strip, lower)


def texts(seed, count):
    draw = random.Random(seed)
    codes = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000 and c not in (10, 13)]
    known = [c for c in codes if unicodedata.category(chr(c)) != "Cn"]
    pools = [range(32, 127), [c for c in known if unicodedata.category(chr(c))[0] == "M"],
             [c for c in known if unicodedata.decomposition(chr(c))],
             [c for c in known if chr(c).lower() != chr(c) or chr(c).upper() != chr(c)],
             [9, 32, 0xA0, 0x2003, 0x200B, 0x3000, 0xFEFF], [*range(0x1100, 0x1200), *range(0xAC00, 0xD7A4)],
             known, codes]
    for _ in range(count):
        yield "".join(chr(draw.choice(draw.choice(pools))) for _ in range(draw.randint(1, 12)))
    yield from map(chr, codes[::37])


def main():
    seed, count = (int(x) for x in (sys.argv[2:] + ["1", "10000"][len(sys.argv) - 2:])[:2])
    vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    lines, failed = list(texts(seed, count)), False
    with tempfile.TemporaryDirectory() as folder:
        for name, normalizer in cases():
            t = Tokenizer(models.BPE(vocab=vocab, merges=[]))
            t.normalizer = normalizer
            t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            t.decoder = decoders.ByteLevel()
            t.save(folder + "/tokenizer.json")
            said = subprocess.run([sys.argv[1], "tokenize", folder + "/tokenizer.json"], check=True,
                                  input=("\n".join(lines) + "\n").encode(), stdout=subprocess.PIPE).stdout
            got = [json.loads(x) for x in said.splitlines()]
            want = [x.ids for x in t.encode_batch(lines, add_special_tokens=False)]
            off = [i for i, x in enumerate(want) if got[i] != x]
            failed |= bool(off) or len(got) != len(lines)
            print(f"{name}: {len(off)} of {len(lines)} differ",
                  *(ascii((lines[i], t.decode(got[i]), t.decode(want[i]))) for i in off[:2]))
    return failed


sys.exit(main())
