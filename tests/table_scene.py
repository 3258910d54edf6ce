"""The scene of tools/table, its experts and how demonstrations begin; needs MuJoCo and Meta-World. Prints what is wrong."""
import pathlib
import sys
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools/table"), str(ROOT / "pipelines/checkpoints/table_arm/train")]

import numpy as np

import bench
import experts
import goals
import record
from scene import HOME, PLACES, SIZE, Table

wrong = []


def check(true, text):
    if not true:
        wrong.append(text)


def after(table, seed, steps=40):
    table.reset(seed)
    table.push()
    table.move("drawer")
    for _ in range(steps):
        table.step(experts.expert(table, "open the faucet")[0])
    return table.data.qpos.copy()


table = Table()
first = after(table, 3)
check((after(table, 3) == first).all(), "an episode is the same every time")
check((after(Table(), 3) == first).all(), "and in another scene")
check((after(table, 4) != first).any(), "another seed is another episode")
table.reset(5)
at = table.model.body("drawer").pos.copy()
table.move("drawer", 10)
for _ in range(10):
    table.step([0, 0, 0, 1])
moved = table.model.body("drawer").pos - at
check(0 < np.linalg.norm(moved) < 0.15 and table.moved is None, "a thing is moved to another of its places")
check((np.abs(table.model.body("drawer").pos[:2] - PLACES["drawer"][0]) <= np.array(PLACES["drawer"][1]) + 1e-9).all(), "within them")
check(np.linalg.norm(table.hand() - HOME) < 0.03, "the hand is at home")
table.push()
for _ in range(10):
    table.step([0, 0, 0, 1])
check(np.linalg.norm(table.hand() - HOME) > 0.03, "a push moves the hand")
for thing, states in (("drawer", ("open", "closed")), ("faucet", ("open", "closed"))):
    for state in states:
        table.put(thing, state)
        check(table.state_of(thing) == state, f"the {thing} is {state}")
seen = table.observe("told")
check(seen["observation/image"].shape == (SIZE, SIZE, 3) and seen["observation/wrist_image"].std() > 5, "two views show something")
check((seen["observation/image"] == table.observe("told")["observation/image"]).all(), "the same scene is the same picture")
for skill in goals.SKILLS:
    done = [bench.episode(table, skill, seed, lambda t, s, _: experts.expert(t, s)[0])[0] for seed in (1, 2, 3, 4)]
    check(sum(done) >= 3, f"the expert of '{skill}' does it: {done}")
    idle = bench.episode(table, skill, 1, lambda t, s, _: [0, 0, 0, 1])[0]
    check(not idle, f"'{skill}' is not done by doing nothing")
for skill in ("open the faucet", "close the faucet"):
    bench.start(table, skill, 2)
    for step in range(bench.LONGEST):
        action, sentence = experts.expert(table, skill)
        if sentence == goals.ENDED[skill]:
            break
        check(not (experts.is_done(table, skill) and abs(table.joint("faucet")) > experts.TURNED), f"'{skill}' ends when it is turned")
        table.step(action)
    check(sentence == goals.ENDED[skill] and abs(table.joint("faucet")) >= experts.TURNED, f"'{skill}' turns it with room to spare")
table.reset(6)
record.hand_over(table, "pull the drawer", np.random.default_rng(1))
check(table.state_of("drawer") == "open", "a demonstration can begin where another skill is done")
beginning = SimpleNamespace(stride=5, longest=30, handed=1.0)
for skill in (*goals.SKILLS, goals.IDLE):
    rows = record.record(table, skill, 8, beginning, np.random.default_rng(2))
    check(0 < len(rows) <= 6 and all(row[2].shape == (record.HORIZON, 4) for row in rows), f"the beginning of '{skill}' is recorded")
print("\n".join(wrong))
sys.exit(bool(wrong))
