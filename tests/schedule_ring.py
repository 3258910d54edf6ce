"""schedule_ring.py - rings: a second, plain implementation of section 6 of golden/schedules.

    schedule_ring.py TECTUM golden FOLDER             the golden cases, the reference itself too
    schedule_ring.py TECTUM random FIRST COUNT [KEEP] random scenarios, one for each seed

simulate() takes the canonical form of a pipeline (`tectum expand`), a cost table, a scenario and the
policy's depth (actionflow), and returns the list of events. Random scenarios have bubbles, new
instructions, changes of depth, costs that change, both ways to shift and to pack, on both clocks.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

from schedule_scenarios import compare, events, load, report

PICTURE, TOKEN_BYTES = 256, 512 * 1024   # openvla: rows of a picture, bytes of a token's keys


class Costs:
    def __init__(self, table):
        self.rate = table.get("copy_bytes_per_us", 0)
        self.rows = {(r["node"], r["point"].get("decode", r["point"].get("batch"))): r
                     for r in table["variants"]}

    def launch(self, node, rows, q="p50"):
        return self.rows[node, rows][q]

    def copy(self, tokens):
        return -(-2 * tokens * TOKEN_BYTES // self.rate)

    def steady(self, stages, depth):
        """p99 of a full ring's frame."""
        forwards = -(-stages // depth)
        rows = [len(range(j, stages, forwards)) - (j == 0) for j in range(forwards)]
        return self.launch("packed", rows[0], "p99") + \
            sum(self.launch("decode", n, "p99") for n in rows[1:])


class Ring:
    def __init__(self, doc, table, scenario, depth):
        nodes = {n["kind"]: n for n in doc["nodes"]}
        ring = next(r for r in doc["resources"] if r["kind"] == "kv.ring")
        self.name, self.k, self.node = ring["name"], ring["stages"], nodes["decode"]["name"]
        self.copies = ring.get("shift") == "device_copy"
        self.gathers = ring.get("pack") == "gather"
        self.flushes = ring.get("on_change", "flush") == "flush"
        self.period = round(doc["frame"]["period_ms"] * 1000)
        self.budget = round(nodes["decode"]["deadline"]["ms"] * 1000)
        self.depths = sorted(doc["capture"]["depth"])
        self.most = next(i["max_tokens"] for i in doc["inputs"] if i["kind"] == "text")
        self.scenario, self.depth, self.first = scenario, depth, Costs(table)
        self.out, self.now, self.frame = [], 0, 0
        self.flight, self.filling, self.key = [], True, None   # flight: oldest first
        self.seen = []

    def tell(self, event, **fields):
        self.out.append({"t_us": self.now, "event": event, "frame": self.frame, **fields})

    def kv(self, op, **fields):
        self.tell("kv", op=op, kv=self.name, **fields)

    def spend(self, node, us, **fields):
        self.tell("start", node=node, **fields)
        self.now += us
        self.tell("end", node=node, us=us)

    def newest(self, what, before):
        """The last entry of a list of the scenario that holds by now."""
        for entry in self.scenario.get(what, []):
            if entry["frame"] <= self.frame:
                before = entry
        return before

    def decide(self):
        wish = self.newest("params", {"depth": self.depth})["depth"]
        if wish == 0:
            fits = [d for d in self.depths if self.costs.steady(self.k, d) <= self.budget]
            return fits[0] if fits else self.depths[-1]
        return max([d for d in self.depths if d <= wish] or [self.depths[0]])

    def enter(self, prompt):
        slot = 0 if self.copies else self.frame % self.k
        self.flight.append({"id": self.frame, "slot": slot, "stage": 0, "prefix": PICTURE + prompt,
                            "born": self.opened})
        self.kv("alloc", request=self.frame, slot=slot, tokens=PICTURE + prompt)

    def forward(self, enters):
        rows = self.flight[::-1]
        segments = [[r["id"], r["stage"], r["slot"], r["prefix"] if enters and i == 0 else 1,
                     0 if enters and i == 0 else r["prefix"] + r["stage"] - 1,
                     r["prefix"] + r["stage"]] for i, r in enumerate(rows)]
        if self.gathers:
            seen = sum(s[5] for s in segments)
            self.spend("gather", self.costs.copy(seen))
            self.kv("gather", bytes=seen * TOKEN_BYTES, tokens=seen)
        name, n = ("packed", len(rows) - 1) if enters else ("decode", len(rows))
        self.spend(name, self.costs.launch(name, n), rows=sum(s[3] for s in segments),
                   segments=segments)
        for r in rows:
            r["stage"] += 1
        self.tell("tokens", requests=[r["id"] for r in rows], done=[r["stage"] for r in rows])
        while self.flight and self.flight[0]["stage"] == self.k:
            r = self.flight.pop(0)
            self.left, self.filling = True, False
            self.tell("release", node=self.node, request=r["id"], age_frames=self.frame - r["id"],
                      age_us=self.now - r["born"])
            self.kv("evict", request=r["id"], slot=r["slot"], tokens=r["prefix"] + self.k - 1)
        if self.copies and self.flight:
            moves = [[r["slot"], r["slot"] + 1, r["prefix"] + r["stage"] - 1] for r in self.flight]
            tokens = sum(m[2] for m in moves)
            for r in self.flight:
                r["slot"] += 1
            self.spend("copy", self.costs.copy(tokens))
            self.kv("copy", bytes=tokens * TOKEN_BYTES, tokens=tokens, moves=moves)

    def run_frame(self, tick):
        self.now = self.opened = tick
        self.left = False
        changed = self.newest("costs_from", None)
        self.costs = Costs(changed["costs"]) if changed else self.first
        observed = self.frame not in self.scenario.get("missing", [])
        self.seen.append(observed)
        self.tell("frame", tick_us=tick)
        prompt = self.scenario.get("text_tokens", self.most)
        key = 0
        for entry in self.scenario.get("instruction", []):
            if entry["frame"] <= self.frame:
                key, prompt = key + 1, entry.get("text_tokens", prompt)
        if observed:
            if self.flushes and self.key not in (None, key) and self.flight:
                self.kv("flush", requests=[r["id"] for r in self.flight],
                        slots=[r["slot"] for r in self.flight])
                self.flight, self.filling = [], True
            self.key = key
        depth = self.decide()
        forwards = -(-self.k // depth)
        self.tell("plan", policy="actionflow", depth=depth, forwards=forwards)
        for i in range(forwards):
            if i == 0 and observed:
                self.enter(prompt)
            if self.flight:
                self.forward(i == 0 and observed)
        if not self.copies:
            self.kv("rotate", base=(self.frame + 1) % self.k)
        owed = self.frame - (-(-self.k // forwards) - 1)   # whose action should have come
        missed = not self.left and not self.filling
        cause = "none" if not missed else "plan" if owed < 0 or self.seen[owed] else "input"
        self.tell("frame_end", us=self.now - tick, in_flight=len(self.flight),
                  filling=self.filling, missed=missed, cause=cause)

    def run(self):
        paced = self.scenario.get("clock") == "paced"
        for self.frame in range(self.scenario["frames"]):
            self.run_frame(self.frame * self.period if paced else self.now)
        return self.out


def simulate(doc, table, scenario, depth):
    return Ring(doc, table, scenario, depth).run()


# ---- cases ------------------------------------------------------------------------------------

PIPELINE = """return pipeline {{
  name = "random_ring", schema = 1,
  model = model {{ arch = "openvla", weights = "openvla-7b", dtype = "bf16" }},
  frame = frame {{ period_ms = {period}, clock = "internal" }},
  inputs = {{
    image {{ name = "cam", h = 224, w = 224, dtype = "u8" }},
    text {{ name = "instruction", max_tokens = 40 }},
  }},
  resources = {{
    kv.ring {{ name = "ring", stages = {k}, tokens = {tokens}, shift = "{shift}", pack = "{pack}",
              on_change = "{change}" }},
    buffer {{ name = "action", shape = {{ {k} }}, dtype = "i32" }},
  }},
  nodes = {{
    prefill {{ name = "enter", reads = {{ "cam", "instruction" }}, writes = "ring" }},
    decode {{ name = "advance", kv = prev "ring", max_tokens = {k}, pack_with = "enter",
             out = "action", deadline = hard {{ ms = {period}, on_miss = "hold" }} }},
  }},
  capture = capture {{ depth = {{ {depths} }}, on_miss = "error" }},
  memory = memory {{ device = "18GiB" }},
  policy = use {{ name = "actionflow" }},
}}
"""


def random_costs(dice, k):
    prefill, step = dice.randint(20000, 90000), dice.randint(500, 15000)
    rows = [("packed", {"decode": r}, prefill + r * dice.randint(100, 900)) for r in range(k)]
    rows += [("decode", {"batch": b}, step + b * dice.randint(1, 300)) for b in range(1, k + 1)]
    return {"schema": 1, "unit": "us", "copy_bytes_per_us": dice.randint(100000, 3000000),
            "variants": [{"node": node, "point": point, "n": 100, "min": us, "p50": us,
                          "p99": us + us // 20, "p999": us + us // 10, "max": 2 * us}
                         for node, point, us in rows]}


def write_case(folder, seed):
    dice = random.Random(seed)
    k = dice.choice([1, 2, 3, 5, 7, 7, 12])
    frames = dice.randint(2 * k, 5 * k + 12)
    depths = sorted(set(dice.sample(range(1, k + 1), dice.randint(1, min(k, 4)))) | {k})
    some = lambda most: sorted(dice.sample(range(frames), dice.randint(0, min(most, frames))))
    scenario = {"schema": 1, "frames": frames, "clock": dice.choice(["saturated", "paced"])}
    if dice.random() < 0.8:
        scenario["text_tokens"] = dice.randint(1, 40)
    if dice.random() < 0.7:
        scenario["missing"] = some(frames // 3)
    if dice.random() < 0.6:
        scenario["instruction"] = [{"frame": f, "text_tokens": dice.randint(1, 40)}
                                   for f in some(3)]
    if dice.random() < 0.7:
        scenario["params"] = [{"frame": f, "depth": dice.randint(0, k)} for f in some(5)]
    if dice.random() < 0.4:
        scenario["costs_from"] = [{"frame": f, "costs": random_costs(dice, k)} for f in some(2)]
    pipeline = PIPELINE.format(k=k, tokens=296 + k, depths=", ".join(map(str, depths)),
                               shift=dice.choice(["rotate", "device_copy"]),
                               pack=dice.choice(["packed", "gather"]),
                               change=dice.choice(["flush", "keep"]), period=5000)
    with open(os.path.join(folder, "pipeline.lua"), "w") as f:
        f.write(pipeline)
    for name, value in (("costs", random_costs(dice, k)), ("scenario", scenario)):
        with open(os.path.join(folder, name + ".json"), "w") as f:
            json.dump(value, f, indent=1)
    return dice.randint(0, k)


def run(tectum, folder, depth, scratch):
    pipeline, out = os.path.join(folder, "pipeline.lua"), os.path.join(scratch, "out.jsonl")
    expand = subprocess.run([tectum, "expand", pipeline], capture_output=True, text=True)
    if expand.returncode:
        raise RuntimeError(expand.stderr)
    costs, scenario = (os.path.join(folder, name) for name in ("costs.json", "scenario.json"))
    done = subprocess.run([tectum, "simulate", pipeline, "--trace", out, "--param",
                           "depth=%d" % depth, "--costs", costs, "--scenario", scenario],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    want = simulate(json.loads(expand.stdout), load(costs), load(scenario), depth)
    return want, events(out)


def golden(tectum, root, scratch):
    good = True
    for case in sorted(os.listdir(root)):
        folder = os.path.join(root, case)
        if not case.startswith("ring_") or not os.path.exists(os.path.join(folder, "case.json")):
            continue
        expected = events(os.path.join(folder, "expected.jsonl"))
        want, got = run(tectum, folder, load(folder, "case.json")["params"]["depth"], scratch)
        good &= report(case + " reference", compare(expected, want, True))
        good &= report(case + " simulate", compare(expected, got))
    return good


def random_cases(tectum, first, count, scratch, keep):
    good = True
    for seed in range(first, first + count):
        folder = os.path.join(keep or scratch, "ring%d" % seed)
        os.makedirs(folder, exist_ok=True)
        depth = write_case(folder, seed)
        want, got = run(tectum, folder, depth, scratch)
        good &= report("ring %d" % seed, compare(want, got))
    return good


def main(argv):
    with tempfile.TemporaryDirectory() as scratch:
        if argv[2] == "golden":
            return 0 if golden(argv[1], argv[3], scratch) else 1
        keep = argv[5] if len(argv) > 5 else None
        return 0 if random_cases(argv[1], int(argv[3]), int(argv[4]), scratch, keep) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
