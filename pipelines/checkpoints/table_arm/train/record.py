"""Demonstrations of the table's scripted experts: python record.py OUT_DIR [--demos 100] [--skills "press the button,..."]

One .npz for a skill and one for waiting, in the form that metaworld/train/train.py reads: images u8 [N,2,64,64,3], state
f32 [N,4], expert and executed f32 [N,16,4], sentence (index into sentences) [N], demo [N], prompt. A demonstration begins
where another skill has left the hand, is disturbed (a push, a drift, noise on what is executed, a thing that moves), and goes
on after the skill is done, so that the arm learns to say so. `expert` is what the undisturbed expert would do in each state.
With --driver a trained policy acts, and the labels are the expert's. With --longest 30 only beginnings are recorded: many scenes
for little, with --handed 0.6 mostly where another skill has just been done.
"""
import argparse
import pathlib
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path[1:1] = [str(ROOT / "tools/table"), str(ROOT / "tools/demo")]

import experts
import goals
from scene import SIZE, Table

HORIZON = 16            # of the arm's model
AFTER = 40              # control steps that are recorded after an expert has said that its skill is done
LONGEST = 300
WAITS = 90              # steps of waiting
FIRST_SEED = 10_000     # episodes that are judged start at 500 000


class Driver:
    """A policy that is asked every 8 steps."""

    def __init__(self, folder, steps):
        from policy import Local, noise
        self.policy, self.noise = Local(folder, steps=steps), noise

    def action(self, table, prompt, step):
        if step % 8 == 0:
            obs = dict(table.observe(prompt), tectum={"noise": self.noise(0, step), "tasks": ["action"]})
            self.seen, self.chunk = obs, self.policy.infer(obs)["actions"]
        return self.chunk[step % 8].astype(np.float32)


def hand_over(table, skill, rng):
    """Another skill is done, and up to a second later, as a planner is asked once a second, the next one is told."""
    if skill in goals.OPPOSITE:
        table.put(goals.thing_of(skill), goals.MAKES[goals.OPPOSITE[skill]])
    for _ in range(LONGEST):
        action, sentence = experts.expert(table, skill)
        table.step(action)
        if sentence == goals.ENDED[skill]:
            break
    for _ in range(rng.integers(80)):
        table.step(experts.expert(table, skill)[0])


def begin(table, skill, seed, rng, handed):
    """A scene in which another skill has been at work for a while; with the chance `handed` until it was done."""
    table.reset(seed)
    if skill in goals.OPPOSITE:
        state = goals.MAKES[goals.OPPOSITE[skill]]
        table.put(goals.thing_of(skill), rng.choice([state, state, state, state, "between", goals.MAKES[skill]]))
    before = rng.choice([s for s in goals.SKILLS if s != skill]) if rng.random() < 0.75 else goals.IDLE
    if handed and before in goals.SKILLS and rng.random() < handed:
        return hand_over(table, before, rng)
    for _ in range(rng.integers(10, 170)):
        table.step(experts.expert(table, before)[0])


def record(table, skill, seed, a, rng, driver=None):
    """One demonstration as rows (views, state, expert chunk, executed chunk, sentence); none if the expert failed."""
    begin(table, skill, seed, rng, a.handed)
    noise, drift = rng.choice([0.0, 0.25, 0.6]), np.append(rng.uniform(-1, 1, 3), 0)
    drifts, pushed, moved = rng.integers(0, 20) * (rng.random() < 0.5), rng.integers(5, 300), rng.integers(5, 200)
    phase = 0 if driver else rng.integers(a.stride)
    frames, wanted, executed, ended = [], [], [], None
    for t in range(a.longest + HORIZON):
        label, sentence = experts.expert(table, skill)
        if ended is None and (t > WAITS if skill == goals.IDLE else sentence == goals.ENDED[skill]):
            ended = t
        act = driver.action(table, skill, t) if driver else label.copy()
        if t % a.stride == phase and (driver or t >= drifts) and t < a.longest and (ended is None or t < ended + AFTER):
            o = driver.seen if driver else table.observe(skill)
            frames.append((t, o["observation/image"], o["observation/wrist_image"], o["observation/state"], sentence))
        if t == pushed:
            table.push()
        if t == moved and skill in goals.SKILLS:
            table.move(goals.thing_of(skill))
        act = drift if t < drifts and not driver else act + np.append(noise * rng.standard_normal(3) * (0.3 if driver else 1), 0)
        wanted.append(label)
        executed.append(np.clip(act, -1, 1))
        table.step(act)
        if ended is not None and t >= ended + AFTER + HORIZON:
            break
    if ended is None and not driver and a.longest == LONGEST:
        return []
    wanted, executed = np.array(wanted, np.float32), np.array(executed, np.float32)
    return [(np.stack([a, b]), s, wanted[t:t + HORIZON], executed[t:t + HORIZON], x)
            for t, a, b, s, x in frames if t + HORIZON <= len(wanted)]


def record_skill(table, skill, a, driver):
    rng = np.random.default_rng([a.seed, *map(ord, skill)])
    rows, good, since = [], 0, time.time()
    for i in range(a.demos):
        r = record(table, skill, a.seed + i, a, rng, driver)
        rows += [(*x, i) for x in r]
        good += bool(r)
    sentences = sorted({r[4] for r in rows})
    np.savez(a.out / f"{skill.replace(' ', '_')}{'.driven' if driver else ''}.npz",
             images=np.array([r[0] for r in rows]), state=np.array([r[1] for r in rows]),
             expert=np.array([r[2] for r in rows]), executed=np.array([r[3] for r in rows]),
             sentence=np.array([sentences.index(r[4]) for r in rows]), demo=np.array([r[5] for r in rows]),
             sentences=np.array(sentences), prompt=skill)
    print(f"{skill}: {good}/{a.demos} demonstrations, {len(rows)} frames, {time.time() - since:.0f} s", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--skills", default=",".join((*goals.SKILLS, goals.IDLE)))
    p.add_argument("--demos", type=int, default=100)
    p.add_argument("--driver", help="a checkpoint that drives")
    p.add_argument("--driver-steps", type=int, default=3, help="denoising steps of the driver")
    p.add_argument("--seed", type=int, default=FIRST_SEED)
    p.add_argument("--stride", type=int, default=5, help="control steps between recorded frames; 8 with a driver")
    p.add_argument("--longest", type=int, default=LONGEST, help="control steps of a demonstration; with fewer: of its beginning")
    p.add_argument("--handed", type=float, default=0, help="share that begins as another skill is done, and not amid it")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    a.stride = 8 if a.driver else a.stride
    driver = Driver(a.driver, a.driver_steps) if a.driver else None
    table = Table(SIZE)
    for skill in a.skills.split(","):
        record_skill(table, skill, a, driver)


if __name__ == "__main__":
    main()
