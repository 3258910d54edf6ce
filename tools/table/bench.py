"""How often each scripted expert does its skill: python bench.py [--episodes 100] [--seed 1] [--skills "press the button,..."]

Each episode places things by its seed, puts the others in any state and the skill's own in the opposite one, and disturbs: in
every second episode the hand is pushed, in every fourth the thing is moved under way. Done means: the skill's thing is as it
should be 20 steps after it was for the first time (the button: it was down), and no other thing has changed.
"""
import argparse
import math
import sys

import numpy as np

import experts
import goals
from scene import STEP_MS, Table

LONGEST = 320
AFTER = 20
FIRST_SEED = 1


def start(table, skill, seed):
    """Sets the scene so that the skill has something to do. -> the states of all things"""
    verb, _, thing = skill.split()
    table.reset(seed)
    if thing != "button":
        table.put(thing, goals.STATE[goals.OPPOSITE[verb]])
    return {other: table.state_of(other) for other in ("drawer", "faucet")}


def disturb(table, skill, seed, step, rng):
    if seed % 2 == 0 and step == rng["push"]:
        table.push()
    if seed % 4 == 1 and step == rng["move"]:
        table.move(skill.split()[2])


def episode(table, skill, seed, act, quiet=False):
    """One episode; `act(table, skill, step)` gives the action. -> whether it was done, steps until then"""
    before, draw = start(table, skill, seed), np.random.default_rng([seed, 9])
    when = {"push": draw.integers(10, 60), "move": draw.integers(10, 40)}
    first = None
    for step in range(LONGEST):
        if not quiet:
            disturb(table, skill, seed, step, when)
        table.step(act(table, skill, step))
        if first is None and experts.is_done(table, skill):
            first = step
        if first is not None and step >= first + AFTER:
            break
    thing = skill.split()[2]
    kept = all(table.state_of(other) == state for other, state in before.items() if other != thing)
    return first is not None and kept and (thing == "button" or experts.is_done(table, skill)), first or LONGEST


def line(skill, done, steps):
    share = np.mean(done)
    return (f"{skill:17s} {sum(done)}/{len(done)} done  {100 * share:.1f} +- "
            f"{100 * math.sqrt(share * (1 - share) / len(done)):.1f} %  {np.mean(steps):.0f} steps "
            f"({np.mean(steps) * STEP_MS / 1e3:.1f} s)  not done: {[i for i, d in enumerate(done) if not d][:12]}")


def main():
    p = argparse.ArgumentParser(prog="bench", description="Success of the table's scripted experts.")
    p.add_argument("--episodes", type=int, default=100, help="of each skill")
    p.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first episode; the next ones follow")
    p.add_argument("--skills", default=",".join(goals.SKILLS))
    p.add_argument("--quiet", action="store_true", help="no disturbance")
    a = p.parse_args()
    table, worst = Table(), 1.0
    for skill in a.skills.split(","):
        trials = [episode(table, skill, a.seed + i, lambda t, s, _: experts.expert(t, s)[0], a.quiet) for i in range(a.episodes)]
        print(line(skill, *map(list, zip(*trials))), flush=True)
        worst = min(worst, np.mean([done for done, _ in trials]))
    return 0 if worst >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
