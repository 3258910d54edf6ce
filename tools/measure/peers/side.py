"""side.py - one side of a comparison: a process that computes frames when it is told to, and what they took."""
import json
import os
import pathlib
import subprocess

from turns import nice


def run_ns(pid):
    """Nanoseconds that the threads of a process ran, and that they waited for a processor."""
    ran = waited = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            a, b, _ = (task / "schedstat").read_text().split()
        except OSError:  # the thread has ended
            continue
        ran, waited = ran + int(a), waited + int(b)
    return ran, waited


class Side:
    """A worker (worker.py), its name in tables, and all samples of its turns.

    command: what starts it. It says `{"about": ...}` when it is warm, then answers each line.
    """

    def __init__(self, name, command, log, priority=0, env=None):
        self.name, self.command, self.priority = name, [str(c) for c in command], priority
        self.env = {**os.environ, **(env or {})}
        self.log = pathlib.Path(log)
        self.process, self.about = None, {}
        self.turns, self.cpu, self.waited = [], [], []

    def start(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                            env=self.env, preexec_fn=lambda: nice(self.priority))
        self.about = self.answer()["about"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            said = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise RuntimeError(f"{self.name} has ended: {said[-1] if said else 'it said nothing'} (all of it: {self.log})")
        return json.loads(line)

    def ask(self, **what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def turn(self, frames):
        ran, waited = run_ns(self.process.pid)
        ms = self.ask(n=frames)["ms"]
        ran_now, waited_now = run_ns(self.process.pid)
        self.turns.append(ms)
        self.cpu.append(1e-6 * (ran_now - ran) / frames)
        self.waited.append(1e-6 * (waited_now - waited) / frames)

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None
