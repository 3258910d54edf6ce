"""Which kinds of moment are asked about in training rows and in play: python shares.py [--rows 5000] [--before 0.22] ...

In per cent of all questions, by kind of goal: what the planner learns from and what it is asked when goals are played by the
rule. No PyTorch is needed. Lists in play are those kept out of training, three to five skills of each kind of goal alike.
"""
import argparse
import pathlib
import sys
from collections import Counter

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[4] / "tools/table"))

import goals

STATES = ("a new goal", "the arm is elsewhere", "the one before has ended", "is under way", "has ended", "all done")


def trained(rng, a):
    for _ in range(a.rows):
        memory = goals.asked(rng, a.before, a.unlisted)
        for _ in range(a.goals):
            goal = goals.fitting(rng, memory, a.agains)
            yield goal.kind, goals.state(goal, memory)


def played(rng, a):
    for i in range(a.rows):
        facts, did, kind = goals.found(rng), goals.listed(rng, 3, 5, True), goals.KINDS[i % len(goals.KINDS)]
        goal = goals.goal(rng, kind, facts, did, True)
        for memory, _, _ in goals.states(goal, goals.Memory(facts, did)):
            yield kind, goals.state(goal, memory)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=5000, help="memories that are drawn, goals that are played")
    p.add_argument("--goals", type=int, default=4, help="of a memory")
    p.add_argument("--before", type=float, default=goals.BEFORE)
    p.add_argument("--unlisted", type=float, default=goals.UNLISTED)
    p.add_argument("--agains", type=float, default=goals.AGAINS)
    a = p.parse_args()
    print(f"{'':10s}{'':26s}" + "".join(f"{kind:>9s}" for kind in (*goals.KINDS, "all")))
    for name, draw in (("trained", trained), ("played", played)):
        count = Counter(draw(goals.seeded(f"shares {name}"), a))
        for state in STATES:
            of = [count[kind, state] for kind in goals.KINDS]
            print(f"{name:10s}{state:26s}" + "".join(f"{100 * n / count.total():9.1f}" for n in (*of, sum(of))))


if __name__ == "__main__":
    main()
