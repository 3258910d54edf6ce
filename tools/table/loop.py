"""Long tasks in closed loop: python loop.py --help

The robot sends what it sees ten times a second (every 8 control steps) and executes the first 8 actions that come back. All
that decides what is done, the planner, its memory and the arm, is in the server. A goal is told once, with the word "ready";
what was found on the table is told once at the beginning, as facts.
"""
import argparse
import hashlib
import json
import math
import pathlib
import sys
import time

import numpy as np

sys.path[1:1] = [str(pathlib.Path(__file__).resolve().parents[1] / "demo")]

import experts
import goals
from engine import ROOT, Engine
from policy import ACTION_DIM, HORIZON, noise
from scene import STEP_MS, Table

EXECUTE = 8
HOLD = np.array([0, 0, 0, 1])   # of an action what a hand does that stands still
PATIENCE = 420          # control steps for each skill of a goal
SETTLED = 240           # after the last skill, until the planner must have said "done"
FIRST_SEED = 500_000
UNHURRIED = ("frame.period_ms=10000", "nodes.act.deadline.ms=9000")


class Robot:
    """One table and the server that drives it. `texts` has all that was said, with the control step."""

    def __init__(self, server, table, a):
        self.server, self.table, self.disturb, self.kills = server, table, not a.quiet, a.kill
        self.scripted, self.forgetful, self.age, self.record = a.scripted, a.forgetful, a.age, a.record
        self.guided, self.stands, self.film = a.guided, a.stand, None
        self.pace = 1 + self.age if self.stands else 1  # how many times as long a goal may take

    def reset(self, seed, name):
        self.server.stop()
        self.server.forget().start(["--record", f"{self.record}/{name}.mcap"] if self.record else [])
        self.seed, self.step, self.texts, self.changes, self.sights = seed, 0, [], {}, []
        self.executed, self.rest = [], np.zeros((0, ACTION_DIM))
        self.frames, self.bytes, self.arm = 0, hashlib.sha256(), []
        self.table.reset(seed)
        self.draw = np.random.default_rng([seed, 11])
        self.newest = {"plan": goals.IDLE, "report": "", "seen": ""}

    def tell(self, put):
        if not self.forgetful:
            self.changes.update(put)
            if self.film:
                self.film.told(put)

    def frame(self, goal):
        """One observation and the 8 control steps of its answer."""
        self.sights = [*self.sights, self.table.observe(goal)][-1 - self.age * (not self.stands):]
        obs = dict(self.sights[0])                      # its prompt is read where there is no planner
        obs |= {"goal": goal, "tectum": {"noise": noise(self.seed % 2**32, self.step), "texts": ["plan", "report", "seen"]}}
        old = EXECUTE * (len(self.sights) - 1)          # control steps since what is sent was seen
        late = min(old, HORIZON - EXECUTE)              # of the chunk's actions so many are of a time that is over
        since = np.array(self.executed[len(self.executed) - late:]).reshape(late, ACTION_DIM)
        if self.guided:
            obs |= {"left": np.concatenate([since, self.rest]), "delay": np.array([float(late)])}
        if self.changes:
            obs["memory"], self.changes = json.dumps({"put": self.changes}), {}
        reply, plan = self.server.infer(obs), self.newest["plan"]
        for t in reply["tectum"].get("texts", ()):
            if t["text_done"]:
                self.newest[t["stream"]] = t["text"].strip()
                self.texts.append((self.step, t["stream"], t["text"].strip()))
                if self.film:
                    self.film.heard(*self.texts[-1])
        actions = np.array(reply["actions"])
        self.keep(obs, plan, actions)
        if self.film:
            self.film(self.step, obs)
        self.rest = actions[late + EXECUTE:]
        wait = [HOLD * (self.executed or [actions[0]])[-1]] * (EXECUTE * self.age * self.stands)
        for action in (*wait, *actions[late:late + EXECUTE]):
            if self.disturb:
                self.somebody()
            action = self.expert() if self.scripted else action
            self.executed.append(action)
            self.table.step(action)
            self.step += 1
            yield

    def keep(self, obs, plan, actions):
        """For who compares bytes: all actions, and what the arm was given against what came, where it is certain which sentence it read."""
        self.frames += 1
        self.bytes.update(actions.tobytes())
        if plan == self.newest["plan"]:
            given = [obs[k] for k in sorted(obs) if k.startswith("observation/") or k in ("left", "delay")] + [obs["tectum"]["noise"]]
            text = b"".join(np.ascontiguousarray(x).tobytes() for x in given) + plan.encode()
            self.arm.append([hashlib.sha256(text).hexdigest()[:12], hashlib.sha256(actions.tobytes()).hexdigest()[:12]])

    def expert(self):
        """The scripted expert in the arm's place: it does what the planner says, and what it says is remembered."""
        plan = self.newest["plan"]
        action, sentence = experts.expert(self.table, plan if plan in goals.SKILLS else goals.IDLE)
        self.tell({"seen": sentence})
        return action

    def somebody(self):
        """Once in some seconds the hand is pushed, or a thing is moved."""
        draw = self.draw.random()
        if draw < 1 / 300:
            self.table.push()
            self.happened("pushes")
        elif draw < 2 / 300:
            thing = self.draw.choice(["drawer", "button", "faucet"])
            self.table.move(thing)
            self.happened(f"moves the {thing}")

    def happened(self, what):
        if self.film:
            self.film.happened(self.step, what)


def pursue(robot, goal):
    """Pursues one goal to its end. -> how many of its skills were done in their order, whether the planner said "done" then"""
    reached, limit, end = 0, robot.step + robot.pace * (PATIENCE * len(goal.skills) + SETTLED), None
    begun, killed = robot.step, False
    while robot.step < limit:
        for _ in robot.frame(goal.text):
            while reached < len(goal.skills) and experts.is_done(robot.table, goal.skills[reached]):
                reached += 1
        if robot.kills and killed is False and reached:
            robot.server.kill()
            robot.happened("kill -9")
            robot.server.start()
            killed = True
        fresh = robot.step - begun > 160 * robot.pace      # the planner has answered this goal by then
        if fresh and robot.newest["plan"] == goals.IDLE:
            end = robot.step
            break
    return reached, end is not None


def kept(table, before, skills):
    """Whether all things are as the skills leave them; those that none is about as they were."""
    wanted = dict(before)
    for skill in skills:
        if skill in goals.MAKES:
            wanted[goals.thing_of(skill)] = goals.MAKES[skill]
    return all(table.state_of(thing) == state for thing, state in wanted.items())


def told(robot, found=None):
    """A new goal; with `found` also what is on the table, in the order in which a planner was taught to read."""
    robot.tell(goals.Memory(found).segments() if found else {"said": goals.READY})


def episode(robot, kind, seed):
    """-> what came out, as a map for the log"""
    robot.reset(seed, f"{kind}-{seed}")
    table, rng = robot.table, goals.seeded(f"loop {kind} {seed}")
    found = {thing: table.state_of(thing) for thing in ("drawer", "faucet")}
    first = goals.goal(rng, kind if kind in ("order", "restore") else "order", found, (), held=kind == "order", most=5 if kind == "order" else 4)
    told(robot, found)
    reached, said_done = pursue(robot, first)
    right = reached == len(first.skills) and said_done and kept(table, found, first.skills)
    result = {"kind": kind, "seed": seed, "goal": first.text, "skills": first.skills, "reached": reached, "done": said_done}
    if right and kind == "again":
        robot.happened("puts all back")
        for thing in found:                     # as it was
            table.put(thing, found[thing])
        second = goals.again(first.skills)
        told(robot)
        reached, said_done = pursue(robot, second)
        right = reached == len(second.skills) and said_done and kept(table, found, second.skills)
        result |= {"again": reached, "done": said_done}
    if right and kind == "what":
        robot.newest["report"] = ""
        told(robot)
        pursue(robot, goals.what())
        result["answer"] = robot.newest["report"]
        right = robot.newest["report"] == goals.written(first.skills).strip()
    return {**result, "right": bool(right), "steps": robot.step, "frames": robot.frames,
            "sha256": robot.bytes.hexdigest(), "arm": robot.arm, "texts": changes(robot.texts)}


def changes(texts):
    """Of each stream the texts that differ from the one before."""
    out, last = [], {}
    for step, stream, text in texts:
        if last.get(stream) != text:
            out.append((step, stream, text))
        last[stream] = text
    return out


def options():
    """What the command understands; a bench makes robots of the same words."""
    p = argparse.ArgumentParser(prog="loop", description="Goals of several skills in closed loop.")
    p.add_argument("--pipeline", default="pipelines/table.lua")
    p.add_argument("--program", help="build/release/tectum")
    p.add_argument("--policy", help="of the server, in place of the pipeline's")
    p.add_argument("--set", action="append", default=[], help="PATH=VALUE of the pipeline")
    p.add_argument("--memory", default=str(ROOT / "build/table/memory"), help="folder of the memories; what is in it goes")
    p.add_argument("--kinds", default=",".join(goals.KINDS))
    p.add_argument("--episodes", type=int, default=10, help="of each kind")
    p.add_argument("--seed", type=int, default=FIRST_SEED)
    p.add_argument("--unhurried", action="store_true", help="deadlines of seconds: what a busy machine does has no part in what comes out")
    p.add_argument("--quiet", action="store_true", help="no disturbance")
    p.add_argument("--kill", action="store_true", help="kill the server once in the middle of each goal, and start it again")
    p.add_argument("--age", type=int, default=0, help="the robot sends what it saw so many tenths of a second ago")
    p.add_argument("--guided", action="store_true", help="send what is executed meanwhile and left of the chunk before: real-time chunking, "
                                                         "with --pipeline tools/table/rtc.lua")
    p.add_argument("--stand", action="store_true", help="with --age: send what is seen now, and stand still until the answer is there")
    p.add_argument("--scripted", action="store_true", help="the scripted expert acts and speaks in the arm's place")
    p.add_argument("--forgetful", action="store_true", help="tell no facts, nor that a goal is new")
    p.add_argument("--record", help="write a recording of each episode into this folder, for `tectum replay --sim`; not with --kill")
    p.add_argument("--film", type=pathlib.Path, help="write the first episode of each kind to this folder, as a GIF and a picture")
    p.add_argument("--log", help="append a JSON line an episode to this file")
    return p


def server(a):
    """The server of parsed options, not started yet."""
    if a.record:
        pathlib.Path(a.record).mkdir(parents=True, exist_ok=True)
    policy = ["--policy", a.policy] if a.policy else []
    return Engine(a.memory, a.pipeline, [*policy, *(f"--set={s}" for s in (*a.set, *UNHURRIED * a.unhurried))], a.program)


def filmed(a, table):
    """Whoever makes a film, which needs more packages than a loop does; None where none is asked for."""
    if not a.film:
        return None
    from goal_film import Film
    a.film.mkdir(parents=True, exist_ok=True)
    return Film(table)


def main():
    a = options().parse_args()
    engine = server(a)
    robot, whole = Robot(engine, Table(), a), []
    for kind in a.kinds.split(","):
        since, right = time.time(), []
        for i in range(a.episodes):
            robot.film = filmed(a, robot.table) if i == 0 else None
            result = episode(robot, kind, a.seed + i)
            if robot.film:
                robot.film.write(a.film / f"{kind}-{a.seed}.gif", result["right"])
            right.append(result["right"])
            if a.log:
                with open(a.log, "a") as log:
                    log.write(json.dumps(result) + "\n")
        share, whole = np.mean(right), whole + right
        print(f"{kind:8s} {sum(right)}/{len(right)} right  {100 * share:.1f} +- {100 * math.sqrt(share * (1 - share) / len(right)):.1f} %"
              f"  {(time.time() - since) / len(right):.1f} s an episode", flush=True)
    engine.stop()
    share = np.mean(whole)
    print(f"all      {sum(whole)}/{len(whole)} right  {100 * share:.1f} +- {100 * math.sqrt(share * (1 - share) / len(whole)):.1f} %"
          f"  actions after the deadline: {engine.missed or 'no server ended in order'}")


if __name__ == "__main__":
    main()
