"""How often a planner brings a goal to its end: python judge.py CHECKPOINT... [--goals 50] [--seed 1000]

Each goal is played in words by the rule of tools/table/goals.py: a new goal; of each skill that it was said and the arm has not
answered yet, that it is under way, that it has ended; all done. A goal is right when the planner says the right next skill and the right list in every one of these states, to the end of the
text; that is when greedy answers would play it so. Lists of skills are those kept out of training. Three memories: whole;
without what was found; none.
"""
import argparse
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parents[3] / "tools/table"), str(HERE.parents[1] / "planner/train")]

import goals
import model as planner
import tokenizer as bpe

MEMORIES = ("whole", "nothing found", "none")
TOGETHER = 64           # questions of a forward


def questions(tok, goal, memory, kept):
    """-> prompt and answer of every question of a goal, as ids"""
    for state, said, did in goals.states(goal, memory):
        ids = list(tok.encode(goals.PREFIX))
        for key, text in state.segments().items():
            if kept == "whole" or kept == "nothing found" and not key.startswith("found"):
                ids += tok.encode(text)
        for question, words in ((goals.NEXT, goals.spoken(said)), (goals.DID, goals.written(did))):
            yield ids + tok.encode(goal.text) + tok.encode(question), tok.encode(words) + [tok.end]


@torch.no_grad()
def right(model, asked):
    """Of each question whether the whole answer is what the model says."""
    out = []
    for i in range(0, len(asked), TOGETHER):
        part = asked[i:i + TOGETHER]
        rows = [p + a[:-1] for p, a in part]
        width = max(map(len, rows))
        ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
        at = torch.zeros(len(rows), width, dtype=torch.bool)
        for n, (p, a) in enumerate(part):
            at[n, len(p) - 1:len(p) + len(a) - 1] = True
        mask = torch.ones(1, width, width, dtype=torch.bool).tril()
        said = model(ids, torch.arange(width)[None], mask, at).argmax(-1).tolist()
        for p, a in part:
            out.append(said[:len(a)] == a)
            said = said[len(a):]
    return out


def judge(model, tok, count, seed):
    table = {}
    for kind in goals.KINDS:
        rng = goals.seeded(f"held out {seed} {kind}")
        for kept in MEMORIES:
            table[kind, kept] = []
        for _ in range(count):
            facts, did = goals.found(rng), goals.listed(rng, 3, 5, True)
            goal = goals.goal(rng, kind, facts, did, True)
            for kept in MEMORIES:
                asked = list(questions(tok, goal, goals.Memory(dict(facts), did), kept))
                table[kind, kept].append((asked, None))
        for kept in MEMORIES:
            trials = [asked for asked, _ in table[kind, kept]]
            flat = right(model, [q for asked in trials for q in asked])
            played = []
            for asked in trials:
                played.append(flat[:len(asked)])
                flat = flat[len(asked):]
            table[kind, kept] = played
    return table


def share(hits):
    p = sum(hits) / len(hits)
    return f"{100 * p:.1f} +- {100 * (p * (1 - p) / len(hits)) ** 0.5:.1f} %"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("checkpoints", nargs="+")
    p.add_argument("--goals", type=int, default=50, help="of each kind")
    p.add_argument("--seed", type=int, default=1000)
    a = p.parse_args()
    torch.set_num_threads(1)
    for folder in a.checkpoints:
        table = judge(planner.load(folder), bpe.load(folder), a.goals, a.seed)
        for kept in MEMORIES:
            of = {kind: table[kind, kept] for kind in goals.KINDS}
            print(f"{folder}: memory {kept}: goals {share([all(g) for k in of for g in of[k]])}, answers "
                  f"{share([x for k in of for g in of[k] for x in g])};  "
                  + "  ".join(f"{k} {sum(map(all, g))}/{len(g)}" for k, g in of.items()), flush=True)


if __name__ == "__main__":
    main()
