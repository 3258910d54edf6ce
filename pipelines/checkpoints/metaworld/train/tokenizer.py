"""The demo's tokenizer: a SentencePiece BPE of at most 1024 pieces with PaliGemma's ids, trained on the demo's own words.

Every number 0..255 behind a space is one piece, so one dimension of the state costs one token.
"""
import numpy as np
import sentencepiece

PAD, EOS, BOS, UNK = 0, 1, 2, 3


def bins(state):
    """A normalised state as pi0.5's whole numbers 0..255 (-1 below the range)."""
    return np.clip(np.floor(np.asarray(state) * 128) + 128, -1, 255).astype(int)


def prompt_text(instruction, state):
    """pi0.5's prompt template."""
    return f"Task: {instruction}, State: {' '.join(map(str, bins(state)))};\nAction: "


def train(path, instructions, sentences, vocab=1024):
    """Writes `path` (ends in .model) and returns the processor."""
    rng = np.random.default_rng(0)
    lines = [prompt_text(str(rng.choice(instructions)), rng.uniform(-1, 1, 4)) for _ in range(6000)]
    lines += [" ".join(str(n) for n in rng.permutation(256)[:16]) for _ in range(6000)]
    lines += [s for s in sentences for _ in range(300)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(path).removesuffix(".model"), model_type="bpe", vocab_size=vocab,
        pad_id=PAD, eos_id=EOS, bos_id=BOS, unk_id=UNK, add_dummy_prefix=False, remove_extra_whitespaces=False,
        normalization_rule_name="identity", byte_fallback=True, split_digits=False, hard_vocab_limit=False,
        user_defined_symbols=["\n", ";", ","], minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def number_pieces(sp):
    """Ids of " 0" to " 255"."""
    ids = [sp.encode(f" {n}") for n in range(256)]
    assert all(len(i) == 1 for i in ids)
    return [i[0] for i in ids]


class Prompts:
    """Prompts of many states at once: the same ids as encoding each text."""

    def __init__(self, sp, instructions):
        self.sp, self.numbers = sp, np.array(number_pieces(sp))
        self.head, self.tail = [], sp.encode(";\nAction: ")
        for text in instructions:
            whole = sp.encode(prompt_text(text, np.zeros(4)))
            head = [BOS] + whole[:len(whole) - 4 - len(self.tail)]
            assert head[1:] + [int(self.numbers[128])] * 4 + self.tail == whole
            self.head.append(head)

    def ids(self, task, state):
        """Index of an instruction, normalised state -> ids with BOS."""
        b = bins(state)
        if (b < 0).any():       # "-1" is several pieces
            return self.head[task][:1] + self.sp.encode(self.sp.decode(self.head[task][1:]) + "".join(f" {n}" for n in b) + ";\nAction: ")
        return self.head[task] + self.numbers[b].tolist() + self.tail
