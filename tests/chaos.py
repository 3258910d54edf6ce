"""chaos.py - each cause of a miss is brought about, and every place says it: a tick's line or standard error,
/metrics, explain, the page and the trace.  python3 tests/chaos.py PROGRAM FOLDER [--long]

No test depends on how fast the machine is: the deadline is several times what frames take here now, what is
done to the program takes several deadlines, and only frames are judged whose overrun that explains by itself. With
--long there are 1000 frames, else 160, fewer where the machine is so busy that they would take too long. Where it is so
busy that frames miss a deadline of a second, or becomes so busy meanwhile that they miss theirs, which a program of its
own shows, nothing can be judged: the test waits and begins anew, with the deadline that the machine bears by then. Only
what has been tried three times is skipped, and says so.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request

from chaos_inject import Told, now_us, page_of, pause, picture, port_of, slow_node, slow_things
from serve_client import Socket
from serve_harness import OBSERVATION, PROGRAM, check, end_servers, main, servers, test

WORK, LONG = sys.argv[2], "--long" in sys.argv
DEMO, MEMORY = "pipelines/demo_metaworld.lua", "pipelines/demo_memory.lua"
ROUND = 40  # ticks, in each of which every cause has its turn
# Their ticks within a round. A launch is known by 20 others, so a node's turn comes from the second round on.
IDLE, AMID, POLICY, NODE, CAMERA, BLIND = 7, 13, 19, 25, 31, 37
SLOW_POLICY = """return policy {
  name = "slow", api = 1, version = 1,
  params = { at = int { default = -1, min = -1, max = 1000 }, every = int { default = 1, min = 1, max = 1000 },
             burn = int { default = 0, min = 0, max = 2 }, halt = int { default = 0, min = 0, max = 1 } },
  plan = function(S, F, D)
    local p = F.params
    local asked = false  -- a frame of a request begins a text; in others language goes on alone
    for i = 1, F.nreq do asked = asked or F.req[i].fresh end
    while p.burn == 2 or (p.burn == 1 and asked) or F.index %% p.every == p.at do end
    for i = 1, F.nreq do if p.halt == 1 then D:pause(i) end end
  end,
}
"""


class Busy(Exception):
    """The machine has no time for frames: what is missed then is not what a test has done."""


def too_busy(needed, most):
    return "the machine is too busy: a deadline of several frames would be %d ms, that of the tests is %d ms" % (
        needed, most)


def unless_busy(what, *said):
    """What only a machine that has become busier explains is a failure where it has not."""
    needed = deadline_ms()
    if needed > DEADLINE:
        raise Busy("%s: %s" % (what, too_busy(needed, DEADLINE)))
    check(False, what, *said)


def on_time(f):
    """A test that needs frames which are on time if nothing is done to them: it is tried again where they are not."""
    def run():
        why = None
        for attempt in range(TRIES):
            if attempt:
                end_servers()
                time.sleep(WAIT_S)
            needed = deadline_ms()
            if needed > MOST:
                why = too_busy(needed, MOST)
                continue
            take_pace(needed)
            try:
                return f()
            except Busy as e:
                why = str(e)
                print("# tried again: %s" % why, flush=True)
        return why
    run.__name__ = f.__name__
    return run


def policy_file():
    path = WORK + "/slow.lua"
    with open(path, "w") as f:
        f.write(SLOW_POLICY.replace("%%", "%"))
    return path


MOST = 1000  # ms: with a longer deadline the tests would take too long
TRIES, WAIT_S = 3, 20  # attempts, and seconds between them


def deadline_ms():
    """Several times what a frame takes here and now, but for the longest two."""
    p = subprocess.run([PROGRAM, "run", DEMO, "--random-inputs", "3", "--frames", "40", "--threads", "2", "--format",
                        "json"], capture_output=True, text=True)
    took = [f["end_us"] - f["start_us"] for f in map(json.loads, p.stdout.splitlines())]
    return max(60, 3 * sorted(took[5:])[-3] // 1000)


def take_pace(deadline):
    """What a test goes by: its deadline and period (ms), rounds, and seconds that something takes which must not."""
    global DEADLINE, PERIOD, ROUNDS, PATIENCE
    DEADLINE = deadline
    PERIOD = DEADLINE * 10 // 9
    ROUNDS = 25 if LONG else max(2, min(4, 20000 // (ROUND * PERIOD)))
    PATIENCE = 2.5 * PERIOD / 1000


def settings():
    fields = {"frame.period_ms": PERIOD, "nodes.act.deadline.ms": DEADLINE, "nodes.act.deadline.limit": 100000,
              "nodes.talk.deadline.ms": 600000, "guard.hard_us": 2500 * PERIOD, "guard.strikes": 16, "guard.window_frames": ROUND}  # a strike a round is no quarantine
    options = [x for name, value in fields.items() for x in ("--set", "%s=%d" % (name, value))]
    return [*options, "--policy", policy_file(), "--threads", "2"]


def node_ms():
    return {"SLOW_NODE_MS": str(int(1000 * PATIENCE))}


class Run:
    """`run --clock paced` of so many ticks, and what was done to it: (cause, from, to)."""

    def __init__(self, name, pipeline, ticks, *options, env=None):
        self.record, self.ticks = "%s/%s.mcap" % (WORK, name), ticks
        self.err = open("%s/%s.err" % (WORK, name), "w+")
        self.p = subprocess.Popen(
            [PROGRAM, "run", pipeline, "--clock", "paced", "--frames", str(ticks), "--record", self.record, "--view", "0",
             "--format", "json", "--set", "frame.period_ms=%d" % PERIOD, *options],
            stdout=subprocess.PIPE, stderr=self.err, text=True, env={**os.environ, **(env or {})})
        servers.append(self.p)
        self.lines, self.done, self.live = [], [], None

    def ticks_of(self):
        """The lines as they come; what the page showed shortly before the end."""
        for text in self.p.stdout:
            self.lines.append(json.loads(text))
            if self.lines[-1]["frame"] == self.ticks - 3:
                self.live = page_of(port_of(self.said()))
            yield self.lines[-1]

    def said(self):
        self.err.seek(0)
        return self.err.read()

    def told(self):
        """All places say the same of every frame."""
        check(self.p.wait() == 0, self.said())
        told = Told(PROGRAM, self.record, WORK)
        check(not told.differ(), told.differ())
        causes, counts = told.causes["explain"], {}
        lines = {x["frame"]: x["cause"] for x in self.lines if x["missed"] and x["start_us"] is not None}
        check(lines == causes, lines, causes)
        for f in self.live:
            check((f["cause"] if f["missed"] else None) == causes.get(f["frame"]), f)
        for x in self.lines:
            if x["missed"]:
                counts[x["cause"]] = counts.get(x["cause"], 0) + 1
        summary = self.said().strip().splitlines()[-1]
        check(all("%s %d" % c in summary for c in counts.items()), counts, summary)
        return told


def inputs():
    """A robot whose camera is a file that takes long to open at one tick of a round, and has no picture at another."""
    picture(WORK + "/camera.png")
    picture(WORK + "/late.png")
    rows = [{"observation/image": "@camera.png", "prompt": "press the button"} for _ in range(ROUND)]
    rows[CAMERA]["observation/image"] = "@late.png"
    rows[BLIND] = None
    with open(WORK + "/inputs.jsonl", "w") as f:
        f.write("".join(json.dumps(r) + "\n" for r in rows) * ROUNDS)
    return WORK + "/inputs.jsonl"


def judge(told, done):
    """Causes are right where something is to blame by itself, and every kind was seen."""
    seen = dict.fromkeys((cause for cause, _, _ in done), 0)
    for cause, began, ended in done:
        for f in told.of(began, ended):
            check(f["cause"] == cause, cause, f, (began, ended), told.misses[f["frame"]]["words"])
            seen[cause] += 1
    check(all(seen.values()), seen, done, told.counts())
    return seen


@test
@on_time
def a_paced_run_says_why_each_frame_missed():
    env = {**slow_things(WORK), "SLOW_PICTURE": "late.png", "SLOW_MS": str(int(1000 * PATIENCE) + PERIOD), **node_ms()}
    run = Run("run", DEMO, ROUND * ROUNDS, "--inputs", inputs(), "--random-inputs", "3", *settings(), "--param",
              "at=%d" % POLICY, "--param", "every=%d" % ROUND, env=env)
    for line in run.ticks_of():
        turn = (line["frame"] + 1) % ROUND  # of the next tick
        if turn == NODE and "LD_PRELOAD" in env and line["frame"] > ROUND:
            done = slow_node(run.p.pid, PATIENCE)
            run.done += [done] if done and done[0] else []
        elif turn == IDLE or turn == AMID:
            time.sleep(PERIOD / 4e3)  # the next inputs have been read: else they would come late
            if turn == AMID and line["start_us"] is not None:  # within the next frame
                time.sleep(max(0, 0.75 * PERIOD / 1e3 - (line["end_us"] - line["start_us"]) / 2e6))
            run.done.append(("host", *pause(run.p.pid, PATIENCE)))
    told = run.told()
    seen = judge(told, run.done)
    for turn, cause in ((POLICY, "policy"), (CAMERA, "input"), (BLIND, "input")):
        if turn == CAMERA and "LD_PRELOAD" not in env:
            continue
        frames = [f for f in told.at(turn, ROUND) if (f["planner_us"] >= f["overrun_us"] if cause == "policy" else
                                                      f["end_us"] - f["start_us"] < 1000 * DEADLINE)]
        check(frames and all(f["cause"] == cause for f in frames), cause, frames)
        seen["%s at %d" % (cause, turn)] = len(frames)
    print("# deadline %d ms; judged: %s" % (DEADLINE, seen))
    p = subprocess.run([PROGRAM, "profile", "--waiting", run.record, "--format", "json"], capture_output=True, text=True)
    waited = json.loads(p.stdout)["machine"]
    check(waited["host_us"] > ROUNDS * 1.5e3 * PERIOD, waited)  # what is left of each pause between frames
    check("LD_PRELOAD" not in env or waited["input_us"] > ROUNDS * 2e3 * PERIOD, waited)


@test
@on_time
def a_memory_that_is_cold_is_the_cause():
    env = slow_things(WORK)
    if not env:
        return "no compiler"
    things = {"cup": "kitchen", "fork": "fridge", "pan": "sofa", "box": "bed", "knife": "table", "plate": "sink"}
    store, ticks = WORK + "/store", 200 if LONG else 30
    options = ["--inputs", WORK + "/facts.jsonl", "--threads", "1", "--set", "resources.mem.store=" + store, "--set",
               "resources.ctx.tokens=30", "--set", "nodes.recall.recompute.first=0.1", "--set",
               "nodes.recall.recompute.floor=0.1"]  # not all facts fit, so prompts have others each time

    def write(rows):
        with open(WORK + "/facts.jsonl", "w") as f:
            f.write("".join(json.dumps(r) + "\n" for r in rows))

    goals = [{"goal": "find:" + list(things)[i % 6]} for i in range(ticks)]
    write([{**goals[0], "memory": {"put": {x: "{position:%s,state:dirty,object:%s}\n" % (at, x)
                                           for x, at in things.items()}}}, *goals[1:12]])
    p = subprocess.run([PROGRAM, "run", MEMORY, *options], capture_output=True, text=True)
    check(p.returncode == 0, p.stderr)
    write(goals)
    run = Run("memory", MEMORY, ticks, *options, "--set", "resources.mem.tiers.host=1KiB",
              env={**env, "SLOW_STORE": store})
    for line in run.ticks_of():
        if line["frame"] % 10 != 9:
            continue
        began = now_us()
        open(store + ".slow", "w").close()
        time.sleep(PATIENCE)
        os.remove(store + ".slow")
        run.done.append(("memory", began, now_us()))
    told = run.told()
    print("# judged: %s" % judge(told, run.done))


def figures(port):
    """/metrics: {name with labels: number}."""
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=20) as r:
        rows = [x.rsplit(" ", 1) for x in r.read().decode().splitlines() if not x.startswith("#")]
    return {name: float(value) for name, value in rows}


def by_cause(samples, name):
    found = {k[len(name) + 8:-2]: int(v) for k, v in samples.items() if k.startswith(name + "{cause=")}
    return {cause: n for cause, n in found.items() if n}


class Robot:
    """A server, a client that asks in turn, and what was done to the server meanwhile."""

    def __init__(self):
        self.record, self.control, self.done = WORK + "/serve.mcap", WORK + "/socket", []
        self.err, self.env = open(WORK + "/serve.err", "w+"), {**slow_things(WORK), **node_ms()}
        self.p = subprocess.Popen([PROGRAM, "serve", DEMO, "--port", "0", "--record", self.record, "--control", self.control,
                                   "--view", "0", "--format", "json", *settings()], stdout=subprocess.PIPE,
                                  stderr=self.err, text=True, env={**os.environ, **self.env})
        servers.append(self.p)
        self.port = int(json.loads(self.p.stdout.readline())["url"].rsplit(":", 1)[1])
        self.client, self.missed = self.connect(), 0

    def connect(self):
        client = Socket(self.port, timeout=60)
        check(list(client.reply()) == ["tectum"])
        return client

    def said(self):
        self.err.seek(0)
        return self.err.read()

    def set(self, what):
        p = subprocess.run([PROGRAM, "policy", "set", what, "--control", self.control], capture_output=True, text=True)
        check(p.returncode == 0, p.stderr)
        time.sleep(PERIOD / 1e3)  # from the next frame on

    def ask(self, **options):
        reply = self.client.infer({**OBSERVATION, "tectum": {"tasks": ["action"], **options}})["tectum"]
        self.missed += reply["missed"]
        return reply

    def calm(self):
        """Until all is well again."""
        for _ in range(30):
            if not self.ask()["missed"] and not self.ask()["missed"]:
                return
        unless_busy("requests go on missing their deadlines")

    def during(self, what):
        """A request while something is done, by a thread of its own: asked a little before."""
        thread = threading.Thread(target=self.ask)
        done = what(thread.start)
        thread.join()
        self.done += [done] if done and done[0] else []
        self.calm()
        return done

    def asked_slowly(self):
        for burn in (1, 2):  # 2: also of frames of language alone, so that requests are due before their frame begins
            self.set("burn=%d" % burn)
            for _ in range(20):  # a text may find no slot, and a frame without one does not burn
                if self.ask()["missed"]:
                    break
            self.ask()
            self.set("burn=0")
            self.calm()

    def stalled(self):
        """Clients that stall, each in its way, change nothing for the one that does not."""
        half, deaf = self.connect(), self.connect()
        half.s.sendall(b"\x82\xfe\x10\x00abcd")  # the head of a message of 4 KiB
        for _ in range(2):
            deaf.send({**OBSERVATION, "tectum": {"tasks": ["text"]}})
        before, turns = self.missed, 12
        for _ in range(turns):
            self.ask()
        if self.missed - before >= turns / 2:
            unless_busy("requests miss their deadlines beside clients that stall", self.missed, before)
        half.close()
        deaf.close()

    def full(self):
        """No slot is left: a text is refused, and says so wherever one looks."""
        self.set("halt=1")
        for _ in range(10):  # each begins a text of its own, which does not go on
            self.ask()
        refused = []
        for _ in range(20):  # one that has missed its deadline does not say what became of its text
            reply = self.ask(ask={"node": "talk"})
            refused += [reply] if reply["request"] >= 0 and len(refused) < 3 else []
        check(len(refused) == 3 and all(r["refused"] and r["reason"] == "no kv slot" for r in refused), refused)
        self.set("halt=0")


def slowed(robot):
    return lambda start: slow_node(robot.p.pid, PATIENCE, start)


def stood(robot):
    def what(start):
        start()
        time.sleep(0.002)  # most often within the frame; what is not is not judged
        return ("host", *pause(robot.p.pid, PATIENCE))
    return what


@test
@on_time
def a_server_says_the_same_everywhere():
    robot = Robot()
    for _ in range(30):
        robot.ask()
    rounds = min(ROUNDS, 3)
    for _ in range(rounds):
        for _ in range(10):
            robot.ask()
        if "LD_PRELOAD" in robot.env:
            robot.during(slowed(robot))
        robot.asked_slowly()
        for _ in range(3):
            robot.during(stood(robot))
        robot.stalled()
        robot.full()
    for _ in range(12):
        robot.ask()
    time.sleep(1.2)  # misses are told once a second
    samples, live = figures(robot.port), page_of(port_of(robot.said()))
    robot.p.terminate()
    out = robot.p.communicate(timeout=60)[0]
    check(robot.p.returncode == 0, robot.said())
    told = Told(PROGRAM, robot.record, WORK)
    check(not told.differ(), told.differ())
    causes = told.causes["explain"]
    for f in live:
        check((f["cause"] if f["missed"] else None) == causes.get(f["frame"]), f)
    check(by_cause(samples, "tectum_frame_misses_total") == told.counts(), samples, told.counts())
    misses = json.loads(out.splitlines()[-1])["misses"]
    check(misses.pop("total") == sum(misses.values()) == robot.missed, misses, robot.missed)
    check(by_cause(samples, "tectum_deadline_misses_total") == misses, samples, misses)
    lines = re.findall(r"the last in frame (\d+), [0-9.]+ ms late: (\w+) \(", robot.said())
    check(lines and all(causes.get(int(n)) == cause for n, cause in lines), lines, causes)
    check(all(misses.get(cause) for cause in told.counts()), misses, told.counts())
    skipped = sum(misses.values()) - len(causes)
    check(skipped <= 0 or misses["policy"] > told.counts().get("policy", 0), misses, told.counts())
    seen = judge(told, robot.done)
    slow = [f for f in told.frames if f["missed"] and f["planner_us"] >= f["overrun_us"]]
    check(all(f["cause"] == "policy" for f in slow), slow)  # where no slot was free, only requests missed by it
    check(misses["policy"], misses)
    print("# judged: policy %d, %s; misses of requests: %s" % (len(slow), seen, misses))
    refused = [e for e in told.trace if e.get("args", {}).get("reason") == "no kv slot"]
    check(len(refused) == samples['tectum_texts_total{state="refused"}'], len(refused))
    shown = sum(len(f["refused"]) for f in told.page.values())
    check(len(refused) >= 3 * rounds and shown == len(refused), len(refused), shown)


sys.exit(main())
