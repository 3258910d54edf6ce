"""schedule_handout.py - what schedule_reference.py hands out to a robot, frame by frame.

Section 7 of golden/schedules/README.md: fresh actions, or by on_miss what stands for them.
"""
from fractions import Fraction


class Robot:
    """Section 7: what is handed out for each frame of a session."""

    def __init__(self, pipe, scenario):
        self.pipe, self.mode = pipe, pipe.on_miss
        spec = scenario.get("handout", {})
        self.a, self.dims = spec.get("actions", 0), spec.get("dims", 0)
        self.reset = set(scenario.get("reset", []))
        self.last = None                 # the last command
        self.fresh, self.subs = None, 0  # the last fresh one, and substitutes since
        self.stopped, self.misses = False, 0

    def action(self, f, i):
        v = 1 + f + Fraction(i, 16)
        return [v * (d + 1) for d in range(self.dims)]

    def serve(self, session):
        for ((t, *_), event), in_time in sorted(session.due, key=lambda x: x[0][0]):
            source, actions = self.command(event["frame"], in_time, t, session.known)
            event["source"], event["actions"] = source, [[float(v) for v in row] for row in actions]
            if actions:
                self.last = actions[-1]

    def command(self, n, in_time, t, known):
        if n in self.reset:
            self.stopped, self.misses = False, 0
        if in_time:
            self.misses = 0
        else:
            self.misses += 1
            if self.mode == "stop" or (self.pipe.limit and self.misses > self.pipe.limit):
                self.stopped = True
        if self.stopped:
            return "stopped", []
        if in_time:
            rows = [self.action(n, min(i, self.pipe.horizon - 1)) for i in range(self.a)]
            self.fresh, self.subs = rows[-1], 0
            return "fresh", rows
        known = [f for at, f in known if at <= t] if self.mode == "last_chunk" else []
        if self.last is None and not known:
            return "none", []
        return self.substitute(n, max(known, default=None))

    def substitute(self, n, c):
        if self.mode == "zeros":
            return "zeros", [[Fraction(0)] * self.dims for _ in range(self.a)]
        if self.mode == "decay":
            rows = []
            for _ in range(self.a):
                self.subs += 1
                factor = max(Fraction(0), 1 - Fraction(self.subs, self.pipe.decay))
                rows.append([v * factor for v in self.fresh])
            return "decayed", rows
        if self.mode == "last_chunk":
            places = [max(0, n - c) * self.a + i for i in range(self.a)]
            last = self.pipe.horizon - 1
            return ("held" if places[0] > last else "stale",
                    [self.action(c, min(p, last)) for p in places])
        return "held", [self.last] * self.a
