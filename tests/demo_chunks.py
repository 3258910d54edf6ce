"""Which action a robot executes, and which ones it says it will: tools/demo/episode.py without a simulator."""
import pathlib
import sys
import types

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools/demo"))
import episode


class Robot:
    """Never done; keeps what it executes."""
    name, success = "robot", False

    def reset(self, seed):
        self.steps, self.start, self.done = 0, 0.0, []

    def observe(self):
        return {"prompt": "go"}

    def sentence(self):
        return ""

    def joint(self):
        return 0.0

    def step(self, action):
        self.done.append(float(action[0]))
        self.steps += 1
        return False


def drive(age, execute, given):
    """The answer to observation t is 1000 + 100 * t + row: what was executed tells where it came from."""
    robot, seen = Robot(), []

    def infer(obs):
        seen.append((robot.steps, obs.get("prev_actions")))
        return {"actions": 1000 + 100 * robot.steps + np.arange(16.0)[:, None] * np.ones((16, 4))}
    episode.run(robot, types.SimpleNamespace(infer=infer), 0, episode.Rules(execute, age, given, max_steps=60))
    return robot.done, seen


def check(holds, *what):
    if not holds:
        print("not so:", *what)


for age in (0, 2, 8):
    done, seen = drive(age, 8, True)
    check(done[:age] == [0.0] * age, "the robot waits for its first chunk", age, done[:age])
    first = age or 8                # until the next chunk, which was observed when the first one came
    check(done[age:age + first] == [1000.0 + i for i in range(first)], "which it uses from its first row", age, done)
    for step, given in seen[1:]:
        check(len(given) == age, "as many actions are given as the answer is late", age, step, len(given))
        check([g[0] for g in given] == done[step:step + age][:len(given)] or step + age > 60,
              "given is what is executed meanwhile", age, step, given[:, 0], done[step:step + age])
        late = step + age
        if late + 8 <= 60:
            check(done[late:late + 8] == [1000.0 + 100 * step + age + i for i in range(8)],
                  "late rows are skipped", age, step, done[late:late + 8])
    check(all(g is not None for _, g in seen), "given is sent")
check(all(g is None for _, g in drive(8, 8, False)[1]), "and only when asked for")
for age, execute in ((9, 8), (8, 9), (-1, 8), (0, 17)):
    try:
        episode.Rules(execute, age)
        check(False, "refused", age, execute)
    except ValueError:
        pass
