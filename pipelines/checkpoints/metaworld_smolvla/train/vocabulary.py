"""The tokenizer of the small SmolVLA: SmolLM2's kind of byte-level BPE, with its special tokens and few merges.

Its merges are those of the words of the instructions, until each word with its space is one token.
"""
import json
import re

FIRST = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
LAST = ("<global-img>", "<fake_token_around_image>", "<image>", "<end_of_utterance>")
WORD = re.compile(r" ?[a-z]+|\n")       # what the pattern of GPT-2 makes of instructions in small letters


def letters():
    """GPT-2's letter of each byte: printable ones stand for themselves, others for letters from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b if b in plain else next(others)) for b in range(256)]


def merges_of(words):
    """Pairs in the order in which they are joined, the most frequent first, until no word has two parts."""
    words, merges = [list(w) for w in words], []
    while pairs := [p for w in words for p in zip(w, w[1:])]:
        best = max(sorted(set(pairs)), key=pairs.count)
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def as_letters(text):
    table = letters()
    return "".join(table[b] for b in text.encode())


def build(instructions):
    """-> tokenizer.json as a dictionary"""
    words = [as_letters(w) for text in instructions for w in WORD.findall(text)]
    merges = merges_of(words)
    names = [*FIRST, *letters(), *("".join(p) for p in merges), *LAST]
    vocab = {name: i for i, name in enumerate(names)}
    special = [{"id": vocab[s], "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for s in FIRST + LAST]
    bytes_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, bytes_level]},
            "post_processor": None, "decoder": {**bytes_level, "add_prefix_space": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {k: v for k, v in vocab.items() if k not in LAST}, "merges": [" ".join(p) for p in merges]}}


def ids(tokenizer, instruction):
    """Ids of an instruction of those it was built from, with the new line that SmolVLA's processor appends."""
    vocab = tokenizer["model"]["vocab"]
    return [vocab[as_letters(w)] for w in WORD.findall(instruction + "\n")]
