"""Behaviour cloning of the small pi0.5: python train.py DEMOS[,DEMOS] OUT --minutes 80 [--ages 8] [--init CHECKPOINT]

Flow matching on the expert's chunks and, from the same prefix, cross-entropy on the sentence. With --ages N most samples
are given the first 0..N actions that were really executed, so that the chunk may start where an old observation left off.
"""
import argparse
import copy
import math
import pathlib
import shutil
import time

import numpy as np
import torch
import torch.nn.functional as F

import checkpoint
import tokenizer
from model import Config, Pi05

HELD_OUT = 0.03         # of the demonstrations
STATE_NOISE = 0.02
AGED_SHARE = 0.8        # of the samples when --ages is given


def statistics(rows):
    return {"mean": rows.mean(0).tolist(), "std": rows.std(0).tolist(),
            "q01": np.quantile(rows, .01, 0).tolist(), "q99": np.quantile(rows, .99, 0).tolist()}


class Data:
    """All demonstrations in memory."""

    def __init__(self, folders, out, init, anew=False):
        files = [np.load(f) for folder in folders for f in sorted(pathlib.Path(folder).glob("*.npz"))]
        join = lambda key: np.concatenate([f[key] for f in files])
        instructions = [str(f["prompt"]) for f in files]
        sentences = sorted({str(s) for f in files for s in f["sentences"]})
        path = out / "tokenizer.model"
        if init:
            shutil.copy(init / "tokenizer.model", path)
        else:
            tokenizer.train(path, instructions, sentences)
        self.sp = checkpoint.sentencepiece.SentencePieceProcessor(model_file=str(path))
        state, expert = join("state"), join("expert")
        self.stats = checkpoint.statistics(init) if init and not anew else {
            "state": statistics(state), "actions": statistics(expert.reshape(-1, expert.shape[-1]))}
        actions = checkpoint.Quantiles.read(self.stats["actions"])
        model_space = lambda x: torch.from_numpy(actions.normalise(x).astype(np.float32))
        self.state = checkpoint.Quantiles.read(self.stats["state"]).normalise(state)
        self.expert, self.executed = model_space(expert), model_space(join("executed"))
        self.images = torch.from_numpy(join("images"))
        self.task = np.concatenate([[i] * len(f["state"]) for i, f in enumerate(files)])
        self.demo = np.concatenate([1000 * i + f["demo"] for i, f in enumerate(files)])
        self.prompts = tokenizer.Prompts(self.sp, instructions)
        ids = {s: self.sp.encode(s) + [tokenizer.EOS] for s in sentences}
        longest = max(map(len, ids.values()))
        rows = [ids[str(f["sentences"][i])] for f in files for i in f["sentence"]]
        self.text = torch.tensor([r + [tokenizer.PAD] * (longest - len(r)) for r in rows])

    def split(self, rng):
        """Indices to train on and held out, by demonstration."""
        demos = rng.permutation(np.unique(self.demo))
        held = np.isin(self.demo, demos[:int(HELD_OUT * len(demos))])
        return np.flatnonzero(~held), np.flatnonzero(held)

    def batch(self, index, rng, train):
        state = self.state[index] + (rng.normal(0, STATE_NOISE, (len(index), 4)) if train else 0)
        ids = [self.prompts.ids(self.task[i], s) for i, s in zip(index, state)]
        longest = max(map(len, ids))
        prompt = torch.tensor([r + [tokenizer.PAD] * (longest - len(r)) for r in ids])
        images = self.images[index]
        return dict(images=augment(images, rng) if train else images, prompt=prompt, text=self.text[index],
                    expert=self.expert[index], executed=self.executed[index])


def augment(images, rng):
    """Moves each view by a pixel or two and changes its brightness."""
    b, views, side = images.shape[:3]
    out, all_rows = torch.empty_like(images), torch.arange(side)
    for view in range(views):
        reach = 1 + view
        shift = torch.from_numpy(rng.integers(-reach, reach + 1, (b, 2)))
        y, x = (all_rows + shift[:, :1]).clamp(0, side - 1), (all_rows + shift[:, 1:]).clamp(0, side - 1)
        out[:, view] = images[torch.arange(b)[:, None, None], view, y[:, :, None], x[:, None, :]]
    gain = torch.from_numpy(rng.uniform(0.85, 1.15, (b, views, 1, 1, 1)).astype(np.float32))
    return (out.float() * gain).clamp(0, 255)


def loss(model, batch, ages, repeats):
    """Flow loss and cross-entropy. `repeats` noise samples share one prefix."""
    prompt, text = batch["prompt"], batch["text"]
    width = prompt.shape[1]
    ids = torch.cat([prompt, text], 1)
    h, kv, valid = model.prefix(batch["images"], ids, ids != tokenizer.PAD, width)
    n = h.shape[1] - text.shape[1]                                      # rows of pictures and prompt
    last = valid[:, :n].long().sum(1) - 1 if not (prompt == 0).any() else n - width + (prompt != 0).long().sum(1) - 1
    rows = torch.cat([h[torch.arange(len(h)), last][:, None], h[:, n:-1]], 1)
    words = F.cross_entropy(model.logits(rows).flatten(0, 1), text.flatten(), ignore_index=tokenizer.PAD)
    many = lambda z: z.repeat_interleave(repeats, 0)
    kv = [(many(k[:, :, :n]), many(v[:, :, :n])) for k, v in kv]
    target, executed = many(batch["expert"]), many(batch["executed"])
    b, horizon, _ = target.shape
    age = torch.randint(0, ages + 1, (b, 1)) * (torch.rand(b, 1) < AGED_SHARE)
    given = torch.arange(horizon) < age                                 # [b, horizon]
    t = (torch.distributions.Beta(1.5, 1.0).sample((b, 1)) * 0.999 + 0.001).expand(b, horizon).masked_fill(given, 0)
    noise = torch.randn_like(target)
    x = torch.where(given[..., None], executed, t[..., None] * noise + (1 - t[..., None]) * target)
    v = model.velocity(x, t if ages else t[:, :1], kv, many(valid[:, :n]))
    wrong = (v - (noise - target)).square().mean(-1)
    return wrong[~given].mean(), words


def smooth_numbers(model, sp):
    """Starts the 256 number pieces from smooth features of their value: neighbours are alike from the first step."""
    table = model.paligemma_with_expert.paligemma.lm_head.weight
    x = torch.linspace(-1, 1, 256)[:, None]
    features = torch.cat([x] + [wave(math.pi * k * x) for k in (0.5, 1, 2, 4, 8) for wave in (torch.sin, torch.cos)], 1)
    rows = features @ torch.randn(features.shape[1], table.shape[1])
    with torch.no_grad():
        table[tokenizer.number_pieces(sp)] = rows / rows.std() * table.std()


class Report:
    """Held-out loss of the averaged weights, always on the same samples and noise."""

    def __init__(self, data, held, ages):
        self.data, self.held, self.ages = data, np.random.default_rng(2).permutation(held)[:512], ages

    @torch.no_grad()
    def held_out(self, model):
        state = torch.random.get_rng_state()
        torch.manual_seed(1)
        flow, words = loss(model, self.data.batch(self.held, None, False), self.ages, 2)
        torch.random.set_rng_state(state)
        return flow.item(), words.item()


def train(a, data, model, average, out):
    rng = np.random.default_rng(0)
    chosen, held = data.split(rng)
    report = Report(data, held, a.ages)
    optimiser = torch.optim.AdamW(model.parameters(), a.lr, (0.9, 0.98), weight_decay=0.02, fused=True)
    begin, step, run = time.time(), 0, []
    while (share := (time.time() - begin) / (60 * a.minutes)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = a.lr * min(1, (step + 1) / 150) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        flow, words = loss(model, data.batch(rng.choice(chosen, a.batch, replace=False), rng, True), a.ages, a.repeats)
        optimiser.zero_grad(set_to_none=True)
        (flow + a.words * words).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - min(a.average, (1 + step) / (10 + step)))
        step += 1
        run.append((flow.item(), words.item()))
        if step % 200 == 0:
            seconds = time.time() - begin
            print("step %d  %.1f min  %.0f samples/s  flow %.4f text %.4f  held out %.4f %.4f"
                  % (step, seconds / 60, step * a.batch / seconds, *np.mean(run[-200:], 0), *report.held_out(average)), flush=True)
            checkpoint.save(out, average, data.stats, torch.float32)
    return step


def main():
    p = argparse.ArgumentParser()
    p.add_argument("demos", help="folders of demonstrations, with commas between")
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--minutes", type=float, default=80)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=1.5e-3)
    p.add_argument("--average", type=float, default=0.998, help="decay of the averaged weights, which are what is saved")
    p.add_argument("--repeats", type=int, default=3, help="noise samples that share one prefix")
    p.add_argument("--words", type=float, default=0.05, help="weight of the sentence's loss")
    p.add_argument("--ages", type=int, default=0, help="most actions given in advance, in control steps")
    p.add_argument("--init", type=pathlib.Path, help="go on from this checkpoint, with its tokenizer and statistics")
    p.add_argument("--anew", action="store_true", help="with --init: statistics of these demonstrations, not the checkpoint's")
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    a.out.mkdir(parents=True, exist_ok=True)
    data = Data(a.demos.split(","), a.out, a.init, a.anew)
    model = Pi05(Config(vocab=data.sp.vocab_size()))
    smooth_numbers(model, data.sp)
    if a.init:
        model.load_state_dict(checkpoint.weights(a.init))
    average = copy.deepcopy(model)
    print(f"{len(data.state)} frames, {sum(q.numel() for q in model.parameters())} parameters, {data.sp.vocab_size()} pieces", flush=True)
    begin = time.time()
    steps = train(a, data, model, average, a.out)
    checkpoint.save(a.out, average, data.stats, torch.float32)
    print(f"done: {steps} steps of {a.batch} in {(time.time() - begin) / 60:.1f} min")


if __name__ == "__main__":
    main()
