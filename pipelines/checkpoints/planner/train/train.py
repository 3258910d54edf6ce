"""Trains the planner: python train.py OUT [--steps 1300] [--seed 0] [--notes 0.5] [--init FOLDER]

Several questions share one memory in a training row: each sees the memory and itself. The curriculum adds objects, then
facts that need another fact, when nine of ten answer words are right.
--notes W   a training-only aid: where an object is named in the memory its place in the end is asked for too, with weight W.
            The shipped model has no trace of it but its weights; --notes 0 trains without.
"""
import argparse
import json
import pathlib
import random
import time

import torch
import torch.nn.functional as F

import household
import model as planner
import tokenizer as bpe

LEVELS = [(3, 0), (4, 0), (6, 0), (6, 1), (8, 1), (8, 2), (12, 2)]      # objects, hops
PASSED = 0.9
CHECK = 25              # steps between two looks at the curriculum
EARLIER = 0.2           # of the rows come from the level before


def row(tok, rng, objects, hops, count):
    """-> ids, segments, positions, targets, notes: one memory with `count` questions behind it, side by side."""
    home = household.household(rng, objects, hops)
    ids = list(tok.encode(household.PREFIX))
    segment, target, note = [0] * len(ids), [0] * len(ids), [0] * len(ids)
    for s in home.segments:
        piece = tok.encode(s.text)
        name, told = tok.encode(":" + s.about)[0], tok.encode(":" + s.told)[0]
        ids += piece
        segment += [0] * len(piece)
        target += [0] * len(piece)
        at = [0] * len(piece)
        at[len(piece) - 1 - piece[::-1].index(name)] = tok.encode(":" + s.note)[0]
        if s.told in home.place:
            at[piece.index(told)] = tok.encode(":" + s.note)[0]
        note += at
    positions, n = list(range(len(ids))), len(ids)
    for i, q in enumerate(household.queries(rng, home, count)):
        asked = tok.encode(q.text)
        answer = [t for w in q.answer for t in tok.encode(":" + w)] + [tok.end]
        ids += asked + answer[:-1]
        k = len(asked) + len(answer) - 1
        segment += [1 + i] * k
        positions += range(n, n + k)
        target += [0] * (len(asked) - 1) + answer
        note += [0] * k
    return ids, segment, positions, target, note


def batch(rows):
    width = max(len(r[0]) for r in rows)
    ids, segment, positions, target, note = (torch.tensor([r[i] + [fill] * (width - len(r[i])) for r in rows])
                                             for i, fill in enumerate((0, -1, 0, 0, 0)))
    i, j = segment[:, :, None], segment[:, None, :]
    mask = torch.ones(width, width, dtype=torch.bool).tril() & ((i == j) | (j == 0))
    return ids, positions, mask, target, note


def losses(model, data, notes, end):
    ids, positions, mask, target, note = data
    asked = target > 0
    at = asked | (note > 0) if notes else asked
    logits = model(ids, positions, mask, at)
    here = asked[at]
    answers = F.cross_entropy(logits[here], target[asked])
    aside = F.cross_entropy(logits[~here], note[at & ~asked]) if notes else answers * 0
    words = target[asked] != end
    return answers, aside, (logits[here].argmax(-1) == target[asked])[words].float().mean()


@torch.no_grad()
def accuracy(model, tok, seed, objects, hops, rows=64):
    """Whole answers right, by hops, of households no training row came from."""
    rng = random.Random(f"held out {seed}")
    data = batch([row(tok, rng, objects, hops, 1) for _ in range(rows)])
    ids, positions, mask, target, _ = data
    good = torch.zeros_like(target, dtype=torch.bool)
    good[target > 0] = model(ids, positions, mask, target > 0).argmax(-1) == target[target > 0]
    return (good | (target == 0)).all(1).float().mean().item()


def begin(a, corpus):
    """-> the tokenizer of a corpus, written to a.out, and the model at its start or as a.init left it, with its optimizer."""
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    out = pathlib.Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    tok = bpe.train(corpus)
    bpe.save(tok, out)
    if a.init:
        model = planner.load(a.init).train()
    else:
        model = planner.Planner(planner.config(tok.size))
        planner.start(model)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {tok.size} tokens", flush=True)
    decay = [p for p in model.parameters() if p.ndim == 2]
    plain = [p for p in model.parameters() if p.ndim != 2]
    optimizer = torch.optim.AdamW([dict(params=decay, weight_decay=0.01), dict(params=plain, weight_decay=0.0)], a.lr, (0.9, 0.98))
    return tok, model, optimizer


def rate(optimizer, a, step, warm):
    """The rate of a step: up over `warm` of them, down over the second half."""
    for g in optimizer.param_groups:
        g["lr"] = a.lr * min(1, (step + 1) / warm) * min(1, 2 * (1 - step / a.steps) + 0.02)


def learn(model, optimizer, loss):
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def train(a):
    rng = random.Random(f"training {a.seed}")
    out = pathlib.Path(a.out)
    tok, model, optimizer = begin(a, household.corpus())
    started, level, seen, history = time.process_time(), a.level, [], []
    for step in range(a.steps):
        rate(optimizer, a, step, 100)
        objects, hops = LEVELS[max(0, level - (rng.random() < EARLIER))]
        answers, aside, right = losses(model, batch([row(tok, rng, objects, hops, a.queries) for _ in range(a.batch)]), a.notes,
                                        tok.end)
        learn(model, optimizer, answers + a.notes * aside)
        seen.append((answers.item(), aside.item(), right.item()))
        if (step + 1) % CHECK == 0:
            mean = [sum(c) / CHECK for c in zip(*seen[-CHECK:])]
            minutes = (time.process_time() - started) / 60
            history.append([step + 1, round(minutes, 2), level, *(round(x, 4) for x in mean)])
            if mean[2] > PASSED and level < a.last:
                level += 1
            if (step + 1) % (4 * CHECK) == 0:
                print(f"step {step + 1}  {minutes:.1f} cpu min  level {LEVELS[level]}  answers {mean[0]:.3f}  notes {mean[1]:.3f}  "
                      f"words right {mean[2]:.3f}  lr {optimizer.param_groups[0]['lr']:.2e}", flush=True)
        if (step + 1) % 200 == 0 or step + 1 == a.steps:
            planner.save(model, out, torch.float32, tok.end)
    told = {k: v for k, v in vars(a).items() if k not in ("out", "init")}
    told |= dict(torch=torch.__version__, level_reached=LEVELS[level], cpu_minutes=round((time.process_time() - started) / 60, 1),
                 held_out={f"{o} objects, {h} hops": accuracy(model, tok, a.seed, o, h, 512) for o, h in LEVELS}, history=history)
    (out / "training.json").write_text(json.dumps(told) + "\n")
    print({k: v for k, v in told.items() if k != "history"})


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--steps", type=int, default=1300)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--notes", type=float, default=0.5)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--queries", type=int, default=12)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--init")
    p.add_argument("--level", type=int, default=0, help="the first level")
    p.add_argument("--last", type=int, default=len(LEVELS) - 1, help="the last level")
    train(p.parse_args())


if __name__ == "__main__":
    main()
