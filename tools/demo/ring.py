"""What the age of a ring's actions costs: the sliding button in closed loop, at each depth.  tools/demo/ring --help

Time is virtual. `tectum simulate` runs the real frame loop on a table of costs and says when each frame begins and when the action
of which observation leaves; the simulator goes on meanwhile in control steps of 12.5 ms, and the robot with its last action. Actions
are those of `tectum serve` with the real ring at that depth. So an episode is the same on every machine, however busy it is.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIPELINE = "pipelines/demo_metaworld_token.lua"
COSTS = ROOT / "tools/demo/costs"
UNHURRIED = ("--set=frame.period_ms=60000", "--set=nodes.advance.deadline.ms=60000")    # virtual time is the only one that counts
STEP_US = 12_500
FIRST_SEED = 500_000
TOLD_S = 2.5            # seconds that a robot of full speed has for an episode; a slower one has as much more


def timeline(program, costs, depth, span_us, options=()):
    """Frames of one episode on the device of `costs`: begins [us], releases [(us, number of the observation)]; `options`: of the model."""
    begins, releases, frames = [], [], 64
    while not begins or begins[-1] < span_us:
        with tempfile.NamedTemporaryFile() as trace:
            subprocess.run([program, "simulate", PIPELINE, "--costs", str(costs), "--clock", "saturated", "-n", str(frames), "--param",
                            f"depth={depth}", "--trace", trace.name, "--format", "json", *UNHURRIED, *options], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            events = [json.loads(line) for line in pathlib.Path(trace.name).read_text().splitlines()]
        begins = [e["t_us"] for e in events if e["event"] == "frame"]
        releases = [(e["t_us"], e["request"]) for e in events if e["event"] == "release"]
        frames *= 2
    return begins, releases


class Ring:
    """`tectum serve` with a ring of one depth. `infer` sends an observation of an episode, and `actions` has those that have left,
    by the number of their observation in the episode."""

    def __init__(self, program, depth, options=()):
        from policy import Server
        command = [program, "serve", PIPELINE, "--late-ok", "--port", "0", "--threads", "1", "--format", "json", *UNHURRIED,
                   f"--set=policy.params.depth={depth}", *options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith('{"serving"'):
                self.client = Server("127.0.0.1", int(json.loads(line)["url"].rsplit(":", 1)[1]))
                break
        else:
            raise SystemExit("ring: the server did not start")
        self.requests = self.first = 0

    def begin(self):
        """An episode: the ring is emptied with its first observation."""
        self.first, self.actions = self.requests, {}

    def infer(self, sim):
        reply = self.client.infer(dict(sim.observe(), tectum={"reset": self.requests == self.first}))
        self.requests += 1
        if reply["tectum"]["source"] == "fresh":
            self.actions[reply["tectum"]["chunk_id"] - self.first] = np.array(reply["actions"])[0]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Scripted:
    """The scripted expert in the place of a model: what age costs alone."""

    def begin(self):
        self.actions = {}

    def infer(self, sim):
        self.actions[len(self.actions)] = np.insert(sim.expert_action(), 3, [0, 0, 0])

    def stop(self):
        pass


def episode(sim, ring, frames, seed, slide, speed, span_us):
    """-> seconds until the button was pressed or None, ages [us] of what was executed, observations that were acted on"""
    begins, releases = frames
    sim.reset(seed, slide, speed)
    ring.begin()
    frame = release = 0
    action, seen_us, ages, used = None, 0, [], 0
    for now in range(0, span_us, STEP_US):
        while begins[frame] <= now:             # an observation is taken with the first control step of its frame
            ring.infer(sim)
            frame += 1
        while release < len(releases) and releases[release][0] <= now:
            number = releases[release][1]
            if number in ring.actions:
                action, seen_us, used = ring.actions[number], begins[number], used + 1
            release += 1
        if action is not None:
            ages.append(now - seen_us)
        if sim.step(np.zeros(4) if action is None else action[[0, 1, 2, 6]]):
            return now / 1e6, ages, used
    return None, ages, used


def arguments():
    p = argparse.ArgumentParser(prog="ring", description="Success against the depth of a ring, in closed loop.",
                                formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--costs", default="rtx5090", help="the virtual device: a file of tools/demo/costs")
    p.add_argument("--depths", default="1,2,3,4,7")
    p.add_argument("--slides", default="0,0.05", help="metres a second of the button")
    p.add_argument("--speeds", default="0.25", help="shares of Meta-World's full speed of 80 cm/s")
    p.add_argument("--episodes", type=int, default=50)
    p.add_argument("--seed", type=int, default=FIRST_SEED)
    p.add_argument("--ideal", action="store_true", help="no time passes between observation and action, and each control step has its own")
    p.add_argument("--scripted", action="store_true", help="the scripted expert in the place of the model")
    p.add_argument("--weights", help="another checkpoint")
    p.add_argument("--program", default=str(ROOT / "build/release/tectum"))
    p.add_argument("--log", help="append a JSON line a row to this file")
    return p.parse_args()


def row(a, sim, ring, frames, depth, slide, speed):
    span_us = int(TOLD_S / speed * 1e6)
    begin, done, ages, used, seconds = time.time(), [], [], 0, 0.0
    for seed in range(a.seed, a.seed + a.episodes):
        at, old, n = episode(sim, ring, frames, seed, slide, speed, span_us)
        done.append(at)
        ages += old
        used += n
        seconds += len(old) * STEP_US / 1e6
    good = [at for at in done if at is not None]
    begins, (left_us, number) = frames[0], frames[1][20]
    begun = sum(t < left_us for t in begins)            # frames until that action left, its own among them
    r = {"who": "expert" if a.scripted else "model", "device": "ideal" if a.ideal else a.costs, "depth": depth, "slide": slide,
         "speed": speed, "episodes": len(done), "done": len(good), "seconds": round(float(np.mean(good)), 2) if good else None,
         "frame_ms": round((begins[21] - begins[20]) / 1e3, 1), "frames_old": max(0, begun - 1 - number),
         "left_ms": round((left_us - begins[number]) / 1e3, 1), "age_ms": round(float(np.mean(ages)) / 1e3, 1),
         "actions_s": round(used / seconds, 1), "wall_s": round(time.time() - begin)}
    print(r, flush=True)
    if a.log:
        with open(a.log, "a") as log:
            log.write(json.dumps(r) + "\n")


def main():
    a = arguments()
    sys.path.insert(0, str(ROOT / "tools/demo"))
    from slide import Slide
    numbers = lambda text, kind: [kind(x) for x in text.split(",")]
    slides, speeds = numbers(a.slides, float), numbers(a.speeds, float)
    sim, longest = Slide(), int(TOLD_S / min(speeds) * 1e6)
    model = ["--weights", a.weights] if a.weights else []
    for depth in [1] if a.ideal else numbers(a.depths, int):
        if a.ideal:
            every = list(range(0, longest + STEP_US, STEP_US))
            frames = every, [(t, i) for i, t in enumerate(every)]
        else:
            frames = timeline(a.program, COSTS / f"{a.costs}.costs", depth, longest, model)
        ring = Scripted() if a.scripted else Ring(a.program, depth, model)
        for slide in slides:
            for speed in speeds:
                row(a, sim, ring, frames, depth, slide, speed)
        ring.stop()
    sim.close()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
