"""Behaviour cloning of the small OpenVLA: python train.py DEMOS.npz[,DEMOS.npz] OUT --steps 1500

Cross-entropy of the seven tokens of an action. The target of a bin is shared with its neighbours, so that a bin beside the right
one costs little. --init goes on from a checkpoint; the same steps, seed and threads give the same weights.
"""
import argparse
import copy
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

import checkpoint
from model import ACTION, BINS, Config, OpenVLA, bins_of, centres

HELD_OUT = 0.03         # of the demonstrations
NEAR = 3.0              # bins: the deviation of a target


class Data:
    """All demonstrations in memory."""

    def __init__(self, paths):
        files = [np.load(p) for p in paths]
        join = lambda key: np.concatenate([f[key] for f in files])
        self.pictures = torch.from_numpy(join("pictures"))
        actions = torch.from_numpy(join("actions"))
        rotation = torch.zeros(len(actions), ACTION - 4)
        self.bins = bins_of(torch.cat([actions[:, :3], rotation, actions[:, 3:]], 1))
        self.demo = np.concatenate([10 ** 6 * i + f["demo"] for i, f in enumerate(files)])
        self.prompt = str(files[0]["prompt"])

    def split(self, rng):
        """Indices to train on and held out, by demonstration."""
        demos = rng.permutation(np.unique(self.demo))
        held = np.isin(self.demo, demos[:int(HELD_OUT * len(demos))])
        return np.flatnonzero(~held), np.flatnonzero(held)


def targets():
    """Of each bin the shares of all ids behind it: f32 [256,256]."""
    away = torch.arange(BINS)[:, None] - torch.arange(BINS)
    share = torch.exp(-0.5 * (away / NEAR) ** 2)
    return share / share.sum(1, keepdim=True)


def loss(model, pictures, prompt, bins, shares):
    """Cross-entropy with the shared targets, over the whole vocabulary."""
    vocab = model.c.vocab
    logp = F.log_softmax(model(pictures, prompt, vocab - bins[:, :-1]), -1)
    of_bins = logp[..., vocab - BINS:].flip(-1)             # bin 1 is the last id
    return -(shares[bins - 1] * of_bins).sum(-1).mean()


def smooth_bins(model):
    """Starts the actions' ids from smooth features of their value: neighbours are alike from the first step."""
    x = centres().float()[:, None]
    features = torch.cat([x] + [wave(math.pi * k * x) for k in (0.5, 1, 2, 4, 8) for wave in (torch.sin, torch.cos)], 1)
    for table in (model.language_model.model.embed_tokens.weight, model.language_model.lm_head.weight):
        rows = features @ torch.randn(features.shape[1], table.shape[1])
        with torch.no_grad():
            table[-BINS:] = (rows / rows.std() * table.std()).flip(0)


@torch.no_grad()
def held_out(model, data, held, prompt, shares):
    """Loss, and how far a greedy displacement is from the expert's on average."""
    index = np.random.default_rng(2).permutation(held)[:256]
    bins = data.bins[index]
    said = (model.c.vocab - model.infer(data.pictures[index], prompt)).clamp(1, BINS)
    wrong = (centres()[said - 1] - centres()[bins - 1]).abs()[:, :3].mean()
    return loss(model, data.pictures[index], prompt, bins, shares).item(), wrong.item()


def train(a, data, model, average, prompt, out):
    rng, shares = np.random.default_rng(a.seed), targets()
    chosen, held = data.split(np.random.default_rng(0))
    demos = len(np.unique(data.demo))
    optimiser = torch.optim.AdamW(model.parameters(), a.lr, (0.9, 0.98), weight_decay=0.02, fused=True)
    begin, run = time.time(), []
    for step in range(a.steps):
        for group in optimiser.param_groups:
            group["lr"] = a.lr * min(1, (step + 1) / 100) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / a.steps)))
        index = rng.choice(chosen, a.batch, replace=False)
        wrong = loss(model, data.pictures[index], prompt, data.bins[index], shares)
        optimiser.zero_grad(set_to_none=True)
        wrong.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - min(a.average, (1 + step) / (10 + step)))
        run.append(wrong.item())
        if step % 100 == 99 or step == a.steps - 1:
            print("step %d  %.1f min, %.1f of this process  loss %.4f  held out %.4f, wrong by %.4f"
                  % (step + 1, (time.time() - begin) / 60, time.process_time() / 60, np.mean(run[-100:]),
                     *held_out(average, data, held, prompt, shares)), flush=True)
            checkpoint.save(out, average, demos, len(data.demo), torch.float32)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("demos", help="files of demonstrations, with commas between")
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--steps", type=int, default=1500)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=1.5e-3)
    p.add_argument("--average", type=float, default=0.98, help="decay of the averaged weights, which are what is saved")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--init", help="go on from this checkpoint")
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    a.out.mkdir(parents=True, exist_ok=True)
    data = Data(a.demos.split(","))
    checkpoint.train_tokenizer(a.out / "tokenizer.model", checkpoint.prompt_text(data.prompt))
    ids, pieces = checkpoint.prompt_ids(a.out, data.prompt)
    if a.init:
        model = checkpoint.load(a.init)
    else:
        model = OpenVLA(Config(pieces + BINS))
        smooth_bins(model)
    print(f"{len(data.demo)} pictures, {sum(q.numel() for q in model.parameters())} parameters, {pieces} pieces, "
          f"{len(ids)} ids of the prompt", flush=True)
    train(a, data, model, copy.deepcopy(model), torch.tensor(ids), a.out)


if __name__ == "__main__":
    main()
