"""How often each skill is done, by its scripted expert or an arm: python bench.py [--episodes 100] [--checkpoint DIR]

Each episode places things by its seed, puts the others in any state and the skill's own in the opposite one, and disturbs: in
every second episode the hand is pushed, in every fourth the thing is moved under way. Done means: the skill's thing is as it
should be 20 steps after it was for the first time (the button: it was down), and no other thing has changed.
"""
import argparse
import math
import pathlib
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
    table.reset(seed)
    if skill in goals.OPPOSITE:
        table.put(goals.thing_of(skill), goals.MAKES[goals.OPPOSITE[skill]])
    return {other: table.state_of(other) for other in ("drawer", "faucet")}


def disturb(table, skill, seed, step, rng):
    if seed % 2 == 0 and step == rng["push"]:
        table.push()
    if seed % 4 == 1 and step == rng["move"]:
        table.move(goals.thing_of(skill))


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
    thing = goals.thing_of(skill)
    kept = all(table.state_of(other) == state for other, state in before.items() if other != thing)
    return first is not None and kept and (thing == "button" or experts.is_done(table, skill)), first or LONGEST


class Arm:
    """A trained arm in PyTorch, asked every 8 steps. `said` has of each of its sentences whether it is the expert's."""

    def __init__(self, folder, steps=5):
        sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / "demo")]
        from policy import Local, noise
        self.policy, self.noise, self.said = Local(folder, steps=steps), noise, []

    def __call__(self, table, skill, step):
        if step % 8 == 0:
            answer = self.policy.infer(dict(table.observe(skill), tectum={"noise": self.noise(0, step)}))
            self.chunk = answer["actions"]
            self.said.append(answer["tectum"]["text"] == experts.expert(table, skill)[1])
        return self.chunk[step % 8]


def line(skill, done, steps):
    share = np.mean(done)
    return (f"{skill:17s} {sum(done)}/{len(done)} done  {100 * share:.1f} +- "
            f"{100 * math.sqrt(share * (1 - share) / len(done)):.1f} %  {np.mean(steps):.0f} steps "
            f"({np.mean(steps) * STEP_MS / 1e3:.1f} s)  not done: {[i for i, d in enumerate(done) if not d][:12]}")


def main():
    p = argparse.ArgumentParser(prog="bench", description="Success of the table's skills, one at a time.")
    p.add_argument("--episodes", type=int, default=100, help="of each skill")
    p.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first episode; the next ones follow")
    p.add_argument("--skills", default=",".join(goals.SKILLS))
    p.add_argument("--checkpoint", help="a trained arm in place of the experts")
    p.add_argument("--quiet", action="store_true", help="no disturbance")
    a = p.parse_args()
    table, worst = Table(), 1.0
    act = Arm(a.checkpoint) if a.checkpoint else lambda t, s, _: experts.expert(t, s)[0]
    for skill in a.skills.split(","):
        trials = [episode(table, skill, a.seed + i, act, a.quiet) for i in range(a.episodes)]
        print(line(skill, *map(list, zip(*trials))), flush=True)
        if a.checkpoint:
            print(f"{skill:17s} sentences right {100 * np.mean(act.said):.1f} % of {len(act.said)}", flush=True)
            act.said = []
        worst = min(worst, np.mean([done for done, _ in trials]))
    return 0 if worst >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
