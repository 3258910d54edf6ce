"""Trains the planner of the table: python learn.py OUT [--steps 2950] [--seed 0]

Text, answers and which lists are kept out of training: tools/table/goals.py. Several goals share one memory in a training
row, each asked both questions; each sees the memory and itself. The model is the household planner's, with its start.
The same command goes on where a training was stopped (OUT/state.pt).
--notes W   a training-only aid: at the verb of every skill in a goal or a list, whether it is the one to say next, with weight W;
            at the end of every fact, the verb that restores it. The shipped model has no trace of it but its weights.
--reuse     keys and values of the memory are reused in two of three rows, wholly or in part (reuse.py). The aid then also asks, of each
            segment as it is read alone, for what others look it up by: of what the arm says, the skill's verb; of a skill in a
            list, the verb before it.
"""
import argparse
import hashlib
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parents[3] / "tools/table"), str(HERE.parents[1] / "planner/train")]

import goals
import model as planner
import reuse
from train import begin, learn, losses, rate

TOLD = 25               # steps of a line that is printed
KEPT = 4 * TOLD         # after so many a training that is stopped goes on from there: a multiple, as a line is of whole steps
FORGOTTEN = 0.05        # of the rows have no memory at all: what is then best is learned, too


def skill_notes(tok, ids, chosen, yes, no):
    """Of a text with skills: at the verb of each `yes` where it is the chosen one's, else `no`; elsewhere 0."""
    verbs = {tok.encode(" " + s)[0]: s for s in goals.SKILLS}
    return [0 if i not in verbs else yes if verbs[i] == chosen else no for i in ids]


def verb(tok, skill):
    return tok.encode(" " + skill)[0]


def looked_up(tok, key, text, piece, memory):
    """Notes of a segment that is read alone: what it is looked up by."""
    note = [0] * len(piece)
    if key.startswith("found"):
        thing = key.split()[1]
        note[-1] = verb(tok, goals.making(thing, memory.found[thing]))
    if key == "seen":
        note[-1] = next((verb(tok, s) for s in goals.SKILLS if text in (goals.ENDED[s], goals.ACT[s])), 0)
    if key == "did":
        before = tok.encode(" nothing")[0]
        for t, i in enumerate(piece):
            if i in {verb(tok, s) for s in goals.SKILLS}:
                note[t], before = before, i
    return note


def row(tok, rng, count, before, unlisted, agains):
    """-> ids, segments, the goals' segments, positions, targets, notes of one memory with `count` goals behind it, side by side; the
    lengths of its beginning and its segments; notes of these as they are read alone."""
    memory = goals.asked(rng, before, unlisted)
    yes, no = tok.encode(" first")[0], tok.encode(" nothing")[0]
    ids = list(tok.encode(goals.PREFIX))
    note, lengths = [0] * len(ids), [len(ids)]
    alone = list(note)
    if rng.random() >= FORGOTTEN:
        for key, text in memory.segments().items():
            piece = tok.encode(text)
            ids += piece
            lengths.append(len(piece))
            alone += looked_up(tok, key, text, piece, memory)
            if key == "did" and memory.did:
                note += skill_notes(tok, piece, goals.answer(goals.again(memory.did), memory)[0], yes, no)
            else:
                note += [0] * len(piece)
            if key.startswith("found"):
                note[-1] = tok.encode(" " + goals.making(key.split()[1], memory.found[key.split()[1]]))[0]
    segment, behind, target = [0] * len(ids), [0] * len(ids), [0] * len(ids)
    positions, n = list(range(len(ids))), len(ids)

    def add(text, own, before, at, targets, notes):
        nonlocal note
        ids.extend(text)
        segment.extend([own] * len(text))
        behind.extend([before] * len(text))
        positions.extend(range(at, at + len(text)))
        target.extend(targets)
        note += notes

    for i in range(count):
        goal = goals.fitting(rng, memory, agains)
        said, did = goals.answer(goal, memory)
        told, own = tok.encode(goal.text), 1 + 3 * i
        add(told, own, own, n, [0] * len(told), skill_notes(tok, told, said, yes, no))
        for j, (question, words) in enumerate(((goals.NEXT, goals.spoken(said)), (goals.DID, goals.written(did)))):
            asked, answer = tok.encode(question), tok.encode(words) + [tok.end]
            text = asked + answer[:-1]
            add(text, own + 1 + j, own, n + len(told), [0] * (len(asked) - 1) + answer, [0] * len(text))
    return ids, segment, behind, positions, target, note, lengths, alone


def reusing(rng, rows):
    """What of each memory is reused. Notes in a segment that is not computed to the end ask for what it cannot know: they go."""
    plans = []
    for _, _, _, _, _, note, lengths, _ in rows:
        segment = reuse.laid(lengths)
        block, last = reuse.chosen(rng, len(lengths) - 1)
        for t, u in enumerate(segment):
            if u >= 0 and last[u] < reuse.LAYERS:
                note[t] = 0
        plans.append((segment, block, last))
    return reuse.plan(plans)


def batch(rows):
    """Rows side by side. A token sees what is before it of the memory, of its goal and of its own question."""
    width = max(len(r[0]) for r in rows)
    ids, segment, behind, positions, target, note = (torch.tensor([r[i] + [fill] * (width - len(r[i])) for r in rows])
                                                     for i, fill in enumerate((0, -1, -1, 0, 0, 0)))
    i, j = segment[:, :, None], segment[:, None, :]
    seen = (i == j) | (j == 0) | (behind[:, :, None] == j)
    return ids, positions, torch.ones(width, width, dtype=torch.bool).tril() & seen, target, note


def reused(a, model, rng, rows, end):
    """`losses` of rows whose memories are reused in part, with the notes of segments that are read alone beside the others."""
    kept, alone = reusing(rng, rows), []

    def speak(*given):
        logits, apart = reuse.forward(model, *given, kept)
        note = torch.tensor([r[7] + [0] * (apart.shape[1] - len(r[7])) for r in rows])
        alone.append(F.cross_entropy(apart[note > 0], note[note > 0]) if (note > 0).any() else 0)
        return logits

    answers, aside, right = losses(speak, batch(rows), a.notes, end)
    return answers, aside + alone[0], right


def told(a):
    """The recipe, as training.json has it; of the checkpoint that it goes on from the hash of its weights."""
    begun = hashlib.sha256((pathlib.Path(a.init) / "model.safetensors").read_bytes()).hexdigest() if a.init else None
    return {k: v for k, v in vars(a).items() if k not in ("out", "init")} | ({"init_sha256": begun} if begun else {})


def keep(a, at, model, optimizer, rng):
    """Writes where training is, so that the same command goes on there when it was stopped."""
    file = pathlib.Path(a.out) / "state.pt"
    torch.save(dict(at, told=told(a), model=model.state_dict(), optimizer=optimizer.state_dict(), rng=rng.getstate()), f"{file}.new")
    pathlib.Path(f"{file}.new").rename(file)


def resume(a, model, optimizer, rng):
    """-> the step to begin with, processor seconds until then, history"""
    file = pathlib.Path(a.out) / "state.pt"
    if not file.exists():
        return dict(step=0, seconds=0.0, history=[])
    was = torch.load(file, weights_only=False)
    if was["told"] != told(a):
        sys.exit(f"{file} is of another recipe: {was['told']}")
    model.load_state_dict(was["model"])
    optimizer.load_state_dict(was["optimizer"])
    rng.setstate(was["rng"])
    return {k: was[k] for k in ("step", "seconds", "history")}


def train(a):
    rng = goals.seeded(f"training {a.seed}{' on' if a.init else ''}")
    out = pathlib.Path(a.out)
    tok, model, optimizer = begin(a, goals.corpus())
    at = resume(a, model, optimizer, rng)
    started, sums = time.process_time() - at["seconds"], []
    for step in range(at["step"], a.steps):
        rate(optimizer, a, step, 50)
        rows = [row(tok, rng, a.goals, a.before, a.unlisted, a.agains) for _ in range(a.batch)]
        answers, aside, right = reused(a, model, rng, rows, tok.end) if a.reuse else losses(model, batch(rows), a.notes, tok.end)
        learn(model, optimizer, answers + a.notes * aside)
        sums.append((answers.item(), aside.item(), right.item()))
        if (step + 1) % TOLD == 0:
            at.update(step=step + 1, seconds=time.process_time() - started)
            at["history"].append([step + 1, round(at["seconds"] / 60, 2), *(round(sum(x) / len(x), 4) for x in zip(*sums))])
            sums = []
            print("step %d  %.2f cpu min  answers %.4f  notes %.4f  words right %.4f" % tuple(at["history"][-1]), flush=True)
        if (step + 1) % KEPT == 0:
            keep(a, at, model, optimizer, rng)
    planner.save(model, out, torch.float32, tok.end)
    said = dict(told(a), torch=torch.__version__, cpu_minutes=round(at["seconds"] / 60, 1), history=at["history"])
    (out / "training.json").write_text(json.dumps(said) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--steps", type=int, default=2950)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--goals", type=int, default=4, help="of a row, each asked both questions")
    p.add_argument("--notes", type=float, default=1.0)
    p.add_argument("--before", type=float, default=goals.BEFORE,
                   help="how often the arm still says that the skill before has ended, where a skill was said")
    p.add_argument("--unlisted", type=float, default=goals.UNLISTED,
                   help="how often the skill that was said is taken out of the list of what was done")
    p.add_argument("--agains", type=float, default=goals.AGAINS, help="weight of \"do it again\" among the goals")
    p.add_argument("--reuse", action="store_true", help="with memories of which a part is reused")
    p.add_argument("--init", help="goes on from this checkpoint")
    p.add_argument("--lr", type=float, default=2e-3)
    train(p.parse_args())


if __name__ == "__main__":
    main()
