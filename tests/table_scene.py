"""The scene of tools/table and its experts; needs MuJoCo and Meta-World. Prints what is wrong."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools/table"))

import numpy as np

import bench
import experts
import goals
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
print("\n".join(wrong))
sys.exit(bool(wrong))
