"""schedule_scenarios.py - judge `tectum simulate` event by event with schedule_reference.py.

    schedule_scenarios.py TECTUM golden FOLDER            the golden cases, the reference itself too
    schedule_scenarios.py TECTUM random FIRST COUNT [KEEP] random scenarios, one for each seed

Prints a line for each case; for a difference the event wanted and the one found, and with KEEP the
case is left in that folder. Exit status 1 when anything differs.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

import schedule_reference as reference

MIXED = """return policy {
  name = "mixed", api = 1, version = 1,
  needs = { "decode.k", "decode.batch" },
  params = { n = int { default = 0, min = 0, max = 1000 } },
  plan = function(S, F, D)
    for i = 1, F.nreq do
      local r = F.req[i]
      local x = r.id * 7 + F.index * 3 + F.params.n
      if x % 4 == 0 then D:unshare(i) end
      if x % 11 == 10 then D:shed(i, "bored")
      elseif x % 5 ~= 0 then D:decode(i, 1 + x % 9) end
      D:batch(i, r.id % 2)
      D:priority(i, x % 3)
    end
  end,
}
"""

PIPELINE = """return pipeline {{
  name = "random", schema = 1,
  model = model {{ arch = "pi05", weights = "pi05_base", dtype = "bf16" }},
  frame = frame {{ period_ms = {period_ms}, clock = "internal", overrun = "skip_next" }},
  inputs = {{
    image {{ name = "cam0", h = 224, w = 224, dtype = "u8" }},
    tensor {{ name = "state", shape = {{ 14 }}, dtype = "f32" }},
    text {{ name = "prompt", max_tokens = 200 }},
  }},
  resources = {{
    kv.frame {{ name = "obs", tokens = 456 }},
    kv.requests {{ name = "lang", tokens = 496, slots = {slots}, share_prefix = "obs" }},
    buffer {{ name = "chunk", shape = {{ {horizon}, 32 }}, dtype = "f32" }},
  }},
  nodes = {{
    prefill {{ name = "see", reads = {{ "cam0", "state", "prompt" }}, writes = "obs"{rt} }},
    action {{ name = "act", kv = "obs", steps = 10, out = "chunk"{rt},
             deadline = hard {{ ms = {hard_ms}, on_miss = "{on_miss}"{miss} }} }},
    decode {{ name = "talk", kv = "lang", spawn = {spawn}, max_tokens = {max_tokens},
             out = stream "narration"{bg}{soft} }},
  }},
{partitions}  capture = capture {{ batch = {{ {batch} }}, k = {{ {k} }}, on_miss = "error" }},
  memory = memory {{ device = "9GiB" }},
  policy = use {{ name = "default" }},
}}
"""

PARTITIONS = """  partitions = { sm { name = "rt", share = 0.5 },
                 sm { name = "bg", share = 0.5 } },
"""


def listed(values):
    return ", ".join(str(v) for v in values)


class Scenario:
    """A random case, the same for the same seed."""

    def __init__(self, seed):
        r = self.r = random.Random(seed)
        self.unit = r.choice((1000, 1000, 500, 137, 1))    # coarse units make equal times likely
        self.paced = r.random() < 0.7
        self.policy = r.choice((
            "oxygen", "oxygen", "isolated", "shared_kv", "batch_only", "parallel", "default", "edf",
            "edf", "slack_k", "slack_k", "objective", "mixed"))
        self.batches = sorted({1, *r.sample(range(2, 9), r.randint(0, 4))})
        if r.random() < 0.2 and len(self.batches) > 1:
            self.batches = self.batches[1:]
        self.ks = sorted(r.sample(range(1, 13), r.randint(1, 5)))
        if r.random() < 0.5:
            self.ks = sorted({1, *self.ks})
        self.see, self.act = self.us(4000, 40000), self.us(2000, 20000)
        self.step = self.us(500, 4000)
        self.pipeline()
        self.slow = r.choice((1, 1.5, 1.875, 1.3))
        self.costs = self.table(1)
        self.frames()
        self.accidents()
        self.params()

    def us(self, low, high):
        return max(1, self.r.randint(low, high) // self.unit) * self.unit

    def table(self, scale):
        r, variants = self.r, []
        spread = r.choice((0, 0, 0.03, 0.1))

        def row(node, point, us):
            us = int(us * scale)
            p99 = us + int(us * spread)
            variants.append({"node": node, "point": point, "n": 100, "min": us, "p50": us,
                             "p99": p99, "p999": p99 + us // 100, "max": p99 + us // 20})
        row("see", {}, self.see)
        row("act", {}, self.act)
        more = r.sample(range(1, 12), 2) if r.random() < 0.3 else []
        for b in sorted({*self.batches, *more}):
            row("talk", {"batch": b}, self.step + b * r.choice((20, 50, 200)))
        variants.sort(key=lambda v: v["p50"] if v["node"] == "talk" else 0)
        table = {"schema": 1, "unit": "us", "variants": variants}
        if self.policy == "parallel":
            table["contention"] = self.slow
        return table

    def pipeline(self):
        r, path = self.r, self.see + self.act
        self.period_ms = max(1, int(path * r.choice((0.6, 0.9, 1.0, 1.2, 1.7, 2.5, 4)) / 1000))
        self.hard_ms = r.choice((self.period_ms, max(1, self.period_ms * 9 // 10)))
        if r.random() < 0.2:
            self.period_ms += r.choice((0.2, 0.3, 0.007))
        self.horizon = r.choice((4, 6, 10))
        on_miss = r.choice(("hold", "hold_last", "decay", "last_chunk", "zeros", "stop"))
        miss = ", decay_actions = %d" % r.choice((3, 5, 10)) if on_miss == "decay" else ""
        if on_miss != "stop" and r.random() < 0.3:
            miss += ", limit = %d" % r.randint(1, 3)
        self.spawn = r.choice((0, 0, 1, 1, 2, 3))
        self.soft_ms = r.choice((None, None, self.hard_ms * 2, self.hard_ms * 5))
        soft = "" if self.soft_ms is None else \
            ', deadline = soft { ms = %d, on_miss = "%s" }' % (
                self.soft_ms, r.choice(("shed", "shed", "continue")))
        self.max_tokens = r.choice((3, 8, 13, 30))
        side = self.policy == "parallel"
        self.text = PIPELINE.format(
            period_ms=self.period_ms, slots=r.choice((1, 2, 3, 5, 8, 16)), horizon=self.horizon,
            rt=', partition = "rt"' if side else "", bg=', partition = "bg"' if side else "",
            hard_ms=self.hard_ms, on_miss=on_miss, miss=miss, soft=soft,
            spawn="every(%d)" % self.spawn if self.spawn else "on_request()",
            max_tokens=self.max_tokens, batch=listed(self.batches), k=listed(self.ks),
            partitions=PARTITIONS if side else "")

    def frames(self):
        r = self.r
        self.n = r.randint(4, 24) if r.random() < 0.95 else 120
        self.scenario = {"schema": 1, "clock": "paced" if self.paced else "saturated"}
        if self.paced and r.random() < 0.4:
            self.scenario["sessions"] = [self.session(name) for name in "abcd"[:r.randint(1, 4)]]
        if "sessions" in self.scenario and r.random() < 0.5:
            end = int(self.n * self.period_ms * 1000)
            self.scenario["until_us"] = end + r.choice((0, 0, 1, 777))
        elif not self.paced and r.random() < 0.2:
            self.scenario["until_us"] = self.n * (self.see + self.act)
        else:
            self.scenario["frames"] = self.n

    def session(self, name):
        r = self.r
        period = max(1000, int(self.period_ms * r.choice((1, 1, 1.5, 2, 3, 12)) * 1000))
        return {"name": name, "period_us": period,
                "offset_us": r.choice((0, 0, period // 2, self.us(1, period))),
                "deadline_us": r.choice((period, period, period * 3 // 4, period // 2,
                                         period * 3 // 2)),
                "spawn_every": r.choice((1, 2, 3, 6))}

    def accidents(self):
        r, s, n, path = self.r, self.scenario, self.n, self.see + self.act
        names = [x["name"] for x in s.get("sessions", [])]

        def some(p, most, make):
            return [make() for _ in range(r.randint(1, most))] if r.random() < p else []
        lists = {
            "arrivals": some(0.7 if not self.spawn else 0.3, 12, lambda: {
                "frame": r.randrange(n),
                "max_tokens": min(self.max_tokens, r.choice((1, 2, 3, 8, 20, 30)))}),
            "cancel": some(0.4, 6, lambda: {
                "frame": r.randrange(n), "request": r.choice((0, 1, 2, 3, r.randrange(30), 1000))}),
            "spikes": some(0.6, 6, lambda: {
                "frame": r.randrange(n), "node": r.choice(("see", "act", "talk")),
                "add_us": self.us(1, r.choice((path, 3 * path, 2000, 12 * path)))}),
            "late": some(0.4, 3, lambda: {
                "frame": r.randrange(n), "us": r.choice((self.us(1, path), self.us(1, 3 * path)))}),
        }
        for e in lists["spikes"]:
            if names and r.random() < 0.7:
                e["session"] = r.choice(names)
        lists["late"] = list({e["frame"]: e for e in lists["late"]}.values())
        for key, entries in lists.items():
            if entries:
                s[key] = sorted(entries, key=lambda e: e["frame"])
        if r.random() < 0.5:
            s["eos"] = {str(i): r.randint(1, 20) for i in r.sample(range(20), r.randint(1, 8))}
        if r.random() < 0.3:
            s["costs_from"] = [{"frame": f, "costs": self.table(r.choice((0.7, 1.25, 2)))}
                               for f in sorted(r.sample(range(n), r.randint(1, 2)))]
        if r.random() < 0.5:
            s["handout"] = {"actions": r.randint(1, min(4, self.horizon)), "dims": r.randint(1, 3)}
            if r.random() < 0.5:
                s["reset"] = sorted(r.sample(range(n), r.randint(1, 2)))

    def params(self):
        r = self.r
        draw = {"oxygen": {"k": (1, 12)}, "batch_only": {"k": (1, 12)}, "edf": {"k": (1, 12)},
                "slack_k": {"k_max": (1, 12)}, "mixed": {"n": (0, 50)},
                "objective": {"f_min": (30, 200), "every": (1, 4)}}.get(self.policy, {})
        self.values = {name: r.randint(*span) for name, span in draw.items()}
        if self.policy == "objective" and self.paced:
            self.values["period_us"] = round(self.period_ms * 1000)
        if draw and r.random() < 0.25:
            self.scenario["params"] = [
                {"frame": f, **{name: r.randint(*draw[name]) for name in draw}}
                for f in sorted(r.sample(range(self.n), r.randint(1, 2)))]

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        case = {"policy": self.policy, "params": self.values}
        for name, text in (("pipeline.lua", self.text), ("mixed.lua", MIXED),
                           ("costs.json", json.dumps(self.costs)),
                           ("scenario.json", json.dumps(self.scenario)),
                           ("case.json", json.dumps(case))):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)


def load(*path):
    with open(os.path.join(*path)) as f:
        return json.load(f)


def events(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def run(tectum, folder, policy, params, scratch):
    """The events of the reference and of tectum for one case."""
    pipeline, out = os.path.join(folder, "pipeline.lua"), os.path.join(scratch, "out.jsonl")
    expand = subprocess.run([tectum, "expand", pipeline], capture_output=True, text=True)
    if expand.returncode:
        raise RuntimeError(expand.stderr)
    name = os.path.basename(policy).replace(".lua", "")
    want = reference.simulate(json.loads(expand.stdout), load(folder, "costs.json"),
                              load(folder, "scenario.json"), name, params)
    command = [tectum, "simulate", pipeline, "--policy", policy, "--trace", out,
               "--costs", os.path.join(folder, "costs.json"),
               "--scenario", os.path.join(folder, "scenario.json")]
    for key, value in params.items():
        command += ["--param", "%s=%s" % (key, value)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    kinds = {"handout"} if "handout" not in load(folder, "scenario.json") else set()
    return want, [e for e in events(out) if e["event"] not in kinds]


TIMES = {"t_us", "tick_us", "deadline_us", "us", "age_us", "latency_us", "overrun_us", "late_us"}


def same(want, got, key=None):
    if isinstance(want, dict):
        return isinstance(got, dict) and \
            all(k in got and same(v, got[k], k) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and \
            all(same(w, g) for w, g in zip(want, got))
    if isinstance(want, (bool, str)) or isinstance(got, (bool, str)):
        return type(want) is type(got) and want == got
    if key in TIMES:
        return abs(want - got) <= 1
    if isinstance(want, float) or isinstance(got, float):
        return abs(want - got) <= 1e-6 * max(abs(want), abs(got))
    return want == got


def compare(want, got, strict=False):
    """The first event of `want` that `got` lacks at its place, or None; strict: or has besides."""
    at = 0
    for i, w in enumerate(want):
        start = at
        while at < len(got) and not same(w, got[at]):
            if strict:
                break
            at += 1
        if at >= len(got) or (strict and not same(w, got[at])):
            return i, w, got[start] if start < len(got) else None
        at += 1
    if strict and at < len(got):
        return len(want), None, got[at]
    return None


def report(name, difference):
    print(name, "ok" if difference is None else "differs at event %d\n  wanted %s\n  found  %s" % (
        difference[0], json.dumps(difference[1]), json.dumps(difference[2])))
    return difference is None


def golden(tectum, root, scratch):
    good = True
    for case in sorted(os.listdir(root)):
        folder = os.path.join(root, case)
        if case.startswith("ring_") or not os.path.exists(os.path.join(folder, "case.json")):
            continue
        spec, expected = load(folder, "case.json"), events(os.path.join(folder, "expected.jsonl"))
        policy = spec["policy"]
        policy = os.path.join(root, policy) if "/" in policy else policy
        want, got = run(tectum, folder, policy, spec["params"], scratch)
        good &= report(case + " reference", compare(expected, want, True))
        good &= report(case + " simulate", compare(expected, got))
    return good


def random_cases(tectum, first, count, scratch, keep):
    good = True
    for seed in range(first, first + count):
        case, folder = Scenario(seed), os.path.join(keep or scratch, str(seed))
        case.write(folder)
        policy = os.path.join(folder, "mixed.lua") if case.policy == "mixed" else case.policy
        try:
            want, got = run(tectum, folder, policy, case.values, scratch)
        except RuntimeError as error:
            print(seed, "error", str(error).strip()[:600])
            good = False
            continue
        same = report(str(seed), compare(want, got, True))
        good &= same
        if same and keep:
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
            os.rmdir(folder)
    return good


def main(argv):
    with tempfile.TemporaryDirectory() as scratch:
        if argv[2] == "golden":
            return 0 if golden(argv[1], argv[3], scratch) else 1
        keep = argv[5] if len(argv) > 5 else None
        return 0 if random_cases(argv[1], int(argv[3]), int(argv[4]), scratch, keep) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
