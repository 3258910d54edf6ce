"""profiled.py - tectum as a side whose turns are runs of `tectum profile`: the launches of a pipeline's nodes, timed alone."""
import json
import subprocess

from turns import nice


class Profiled:
    """pick(variant): is that one of the launches whose sum is timed? A turn's samples: the least, the middle, the largest of three.
    others: p50 of every variant of the newest turn, in ms, by (node, batch)."""

    def __init__(self, command, pick, about, priority):
        self.name, self.command, self.pick, self.about, self.priority = "tectum", command, pick, about, priority
        self.turns, self.cpu, self.waited, self.others = [], [], [], {}

    def start(self):
        pass

    def turn(self, _):
        out = subprocess.run([*self.command, "-n", "3", "--rounds", "1", "--format", "json"], check=True, capture_output=True,
                             text=True, preexec_fn=lambda: nice(self.priority)).stdout
        found = json.loads(out)["variants"]
        picked = [v for v in found if self.pick(v)]
        self.turns.append([1e-3 * sum(v[k] for v in picked) for k in ("min", "p50", "max")])
        self.others = {(v["node"], v["point"].get("batch", 0)): 1e-3 * v["p50"] for v in found}
        self.cpu.append(float("nan"))  # the start would be in it
        self.waited.append(float("nan"))

    def stop(self):
        pass
