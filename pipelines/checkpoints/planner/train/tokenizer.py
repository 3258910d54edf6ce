"""A byte-level BPE in Qwen's form (tokenizer.json): trained, written, read and applied.

The texts here are ASCII, so that `re` can say what Qwen's expression says; tectum and Hugging Face read the expression in the file.
"""
import json
import pathlib
import re
from collections import Counter

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
ASCII = re.compile(PATTERN.replace(r"[^\r\n\p{L}\p{N}]", r"[^\r\nA-Za-z0-9]").replace(r"[^\s\p{L}\p{N}]", r"[^\sA-Za-z0-9]")
                   .replace(r"\p{L}", "[A-Za-z]").replace(r"\p{N}", "[0-9]"))
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_letters():
    """Byte -> the letter that stands for it in the file: printable bytes for themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


LETTERS = byte_letters()


def pieces(text):
    return ["".join(LETTERS[b] for b in m.group().encode()) for m in ASCII.finditer(text)]


def merged(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i:i + 2]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


class Tokenizer:
    def __init__(self, vocab, merges):
        self.vocab, self.merges = vocab, merges
        self.rank = {m: i for i, m in enumerate(merges)}
        self.ids = {**vocab, **{s: len(vocab) + i for i, s in enumerate(SPECIAL)}}
        self.text = {i: s for s, i in self.ids.items()}
        self.known = {}

    @property
    def size(self):
        return len(self.ids)

    @property
    def end(self):
        return self.ids["<|endoftext|>"]

    def piece(self, symbols):
        symbols = list(symbols)
        while len(symbols) > 1:
            best = min(zip(symbols, symbols[1:]), key=lambda p: self.rank.get(p, len(self.rank)))
            if best not in self.rank:
                break
            symbols = merged(symbols, best)
        return [self.vocab[s] for s in symbols]

    def encode(self, text):
        if text not in self.known:
            self.known[text] = [i for p in pieces(text) for i in self.piece(p)]
        return self.known[text]

    def decode(self, ids):
        back = {letter: byte for byte, letter in LETTERS.items()}
        return bytes(back[c] for i in ids if i < len(self.vocab) for c in self.text[i]).decode()


def train(lines):
    """Merges the commonest neighbours (of two equally common ones the first in the alphabet) until every piece is one token."""
    words = Counter(p for line in lines for p in pieces(line))
    split = {w: list(w) for w in words}
    merges = []
    while True:
        pairs = Counter()
        for w, symbols in split.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += words[w]
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        split = {w: merged(s, best) for w, s in split.items()}
    vocab = [LETTERS[b] for b in sorted(LETTERS, key=lambda b: LETTERS[b])] + [a + b for a, b in merges]
    return Tokenizer({s: i for i, s in enumerate(dict.fromkeys(vocab))}, merges)


def save(tokenizer, folder):
    added = [dict(id=tokenizer.ids[s], content=s, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
             for s in SPECIAL]
    split = dict(type="Split", pattern=dict(Regex=PATTERN), behavior="Isolated", invert=False)
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    model = dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False,
                 byte_fallback=False, ignore_merges=False, vocab=tokenizer.vocab, merges=[f"{a} {b}" for a, b in tokenizer.merges])
    whole = dict(version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=dict(type="NFC"),
                 pre_tokenizer=dict(type="Sequence", pretokenizers=[split, level]), post_processor=level, decoder=level, model=model)
    config = dict(add_bos_token=False, add_prefix_space=False, bos_token=None, eos_token="<|endoftext|>", pad_token="<|endoftext|>",
                  clean_up_tokenization_spaces=False, errors="replace", model_max_length=4096, split_special_tokens=False,
                  tokenizer_class="Qwen2Tokenizer", unk_token=None,
                  added_tokens_decoder={str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in added})
    folder = pathlib.Path(folder)
    (folder / "tokenizer.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def load(folder):
    model = json.loads((pathlib.Path(folder) / "tokenizer.json").read_text())["model"]
    return Tokenizer(model["vocab"], [tuple(m.split(" ")) for m in model["merges"]])
