"""One closed-loop episode: when is observed, what is executed, how old it is."""
import time
from dataclasses import dataclass, field

import numpy as np

from policy import ACTION_DIM, HORIZON, noise

MAX_STEPS = 200


@dataclass
class Rules:
    """How chunks are used; counts are control steps.

    `age`: steps between an observation and the first action computed from it. `given`: send the actions that will be
    executed in the meantime (`prev_actions`), for a policy trained for it; `left`: all that is left of the chunk, for a policy
    that is guided. Late actions are skipped in every case.
    """
    execute: int = 8
    age: int = 0
    given: bool = False
    left: bool = False
    tasks: tuple = ("action", "text")
    max_steps: int = MAX_STEPS

    def __post_init__(self):
        if not 0 <= self.age <= self.execute <= HORIZON - self.age or self.execute < 1:
            raise ValueError(f"age {self.age} and execute {self.execute}: 0 <= age <= execute, age + execute <= {HORIZON}")


@dataclass
class Result:
    task: str
    seed: int
    success: bool = False
    steps: int = 0
    joint: float = 0.0                              # how far the drawer (metres) or faucet (radians) moved
    said: list = field(default_factory=list)        # (step, sentence, what the expert would have said)
    infer_ms: list = field(default_factory=list)    # as seen by the client
    replies: list = field(default_factory=list)     # bytes of the actions


class Chunks:
    """Chunks on their way and the one that is executed. A chunk is used from the step it was observed in; what is late
    is skipped. The very first one waits for itself: until it is there the robot stands still."""

    def __init__(self, rules):
        self.rules, self.flying, self.current = rules, [], None

    def ahead(self, step):
        """The actions that the steps from `step` on will execute while an observation of now is being answered; with `left`
        also those that would follow."""
        if self.current is None:
            return np.zeros((0, ACTION_DIM), np.float32)
        begin, actions = self.current
        end = len(actions) if self.rules.left else step - begin + self.rules.age
        return actions[step - begin:end].astype(np.float32)

    def sent(self, step, actions):
        arrives = step + self.rules.age
        self.flying.append((arrives, arrives if self.current is None else step, actions))

    def arrive(self, step):
        while self.flying and step >= self.flying[0][0]:
            _, begin, actions = self.flying.pop(0)
            self.current = begin, actions

    def action(self, step):
        """The action of this step; None when there is none yet or none left."""
        if self.current is None or step - self.current[0] >= len(self.current[1]):
            return None
        return self.current[1][step - self.current[0]]


def due(step, rules):
    """Observe every `execute` steps, the first time again when its chunk has arrived."""
    return step == 0 or (step >= rules.age and (step - rules.age) % rules.execute == 0)


def run(sim, policy, seed, rules, instruction=None, watch=None):
    """`watch(step, obs, reply)` is called for each inference; `watch.stepped(...)` for each step where it has that."""
    sim.reset(seed)
    result, chunks = Result(sim.name, seed), Chunks(rules)
    for step in range(rules.max_steps):
        chunks.arrive(step)
        if due(step, rules):
            obs = sim.observe()
            obs["prompt"] = instruction or obs["prompt"]
            obs["tectum"] = {"noise": noise(seed, step), "tasks": list(rules.tasks)}
            if rules.given or rules.left:
                obs["prev_actions"] = chunks.ahead(step)
            begin = time.perf_counter()
            reply = policy.infer(obs)
            result.infer_ms.append(1e3 * (time.perf_counter() - begin))
            actions = np.array(reply["actions"])
            result.replies.append(actions.tobytes())
            result.said.append((step, reply.get("tectum", {}).get("text", ""), sim.sentence()))
            chunks.sent(step, actions)
            chunks.arrive(step)
            if watch:
                watch(step, obs, reply)
        action = chunks.action(step)
        if hasattr(watch, "stepped"):
            watch.stepped(step, sim, chunks)
        if sim.step(np.zeros(ACTION_DIM) if action is None else action):
            break
    result.success, result.steps, result.joint = sim.success, sim.steps, sim.joint() - sim.start
    return result
