"""schedule_reference.py - a second, plain implementation of the rules of golden/schedules.

Written from golden/schedules/README.md alone (sections 1-5 and 7), in exact integer and fraction
arithmetic, to judge `tectum simulate` where the golden cases are silent. simulate() takes the
canonical form of a pipeline (`tectum expand`), a cost table, a scenario and a policy's name, and
returns the list of events. What a policy decides is in schedule_policies.py,
what the robot is given in schedule_handout.py.
"""
import math
from fractions import Fraction

from schedule_handout import Robot
from schedule_policies import POLICIES, Decision, observe_slack_k

FRAME, HANDOUT, SKIP = 0, 1, 2   # the order of events at equal times


def up(t):
    """A printed time: exact fractions are rounded up."""
    return math.ceil(t)


# ---- the cost table ---------------------------------------------------------------------------

class Costs:
    """What a launch takes, at a quantile, and how many rows a captured launch has."""

    def __init__(self, table, pipe):
        self.pipe, self.rows = pipe, {}
        self.contention = Fraction(str(table.get("contention", 1)))
        for row in table["variants"]:
            self.rows[row["node"], row["point"].get("batch")] = row

    @staticmethod
    def quantile(row, q):
        for limit, name in ((0.5, "p50"), (0.99, "p99"), (0.999, "p999")):
            if q <= limit:
                return row[name]
        return row["max"]

    def padded(self, n):
        return min(b for b in self.pipe.batches if b >= n)

    def launch(self, node, q):
        return self.quantile(self.rows[node, None], q)

    def step(self, n, q):
        """One step of n rows: full launches first, the rest in the smallest batch that holds it."""
        full, rest = divmod(n, self.pipe.batches[-1])
        batches = [self.pipe.batches[-1]] * full + ([self.padded(rest)] if rest else [])
        return sum(self.quantile(self.rows[self.pipe.talk, b], q) for b in batches)

    def cost(self, what, n, q):
        if what == "decode":
            return self.step(n, q)
        return self.launch({"prefill": self.pipe.see, "action": self.pipe.act}.get(what, what), q)


class Pipeline:
    """What the rules need of `tectum expand`."""

    def __init__(self, doc):
        nodes = {n["kind"]: n for n in doc["nodes"]}
        res = {r["name"]: r for r in doc["resources"]}
        act, talk = nodes["action"], nodes.get("decode")
        self.see, self.act = nodes["prefill"]["name"], act["name"]
        self.period = round(doc["frame"]["period_ms"] * 1000)
        self.frame_kv, self.tokens = act["kv"], res[act["kv"]]["tokens"]
        hard = act["deadline"]
        self.hard_us = round(hard["ms"] * 1000)
        self.on_miss, self.limit = hard["on_miss"], hard.get("limit", 0)
        self.decay = hard.get("decay_actions", 0)
        self.horizon = res[act["out"]]["shape"][0]
        self.talk = talk["name"] if talk else None
        capture = doc.get("capture", {})
        self.ks, self.batches = sorted(capture.get("k", [])), sorted(capture.get("batch", [1]))
        self.slots, self.every, self.soft_us, self.shed = 0, None, None, False
        if talk:
            self.kv, self.slots = talk["kv"], res[talk["kv"]]["slots"]
            self.max_tokens = talk["max_tokens"]
            if talk["spawn"]["kind"] == "every":
                self.every = talk["spawn"]["frames"]
            if "deadline" in talk:
                self.soft_us = round(talk["deadline"]["ms"] * 1000)
                self.shed = talk["deadline"]["on_miss"] == "shed"


# ---- sessions, frames and the device ------------------------------------------------------------

class Request:
    def __init__(self, i, max_tokens, born, frame, soft_us, eos):
        self.id, self.max, self.born, self.frame = i, max_tokens, born, frame
        self.deadline = born + soft_us if soft_us is not None else math.inf
        self.end = min(max_tokens, eos) if eos else max_tokens
        self.reason = "eos" if eos and eos <= max_tokens else "length"
        self.done, self.stored = 0, False


class Session:
    def __init__(self, pipe, spec, order):
        self.name, self.order = spec.get("name"), order
        self.period = spec.get("period_us", pipe.period)
        self.offset = spec.get("offset_us", 0)
        self.hard_us = spec.get("deadline_us", pipe.hard_us)
        self.every = spec.get("spawn_every", pipe.every)
        self.n = 0                       # the next tick
        self.due = []                    # (time, class, seq, frame, in time or not): handouts
        self.known = []                  # (time, frame): releases

    def tick(self, n):
        return self.offset + n * self.period


class View:
    """What a policy sees of a frame: F."""

    def __init__(self, sim, frame):
        self.pipe, self.req, self.params, self.state = sim.pipe, sim.live(), sim.params, sim.state
        self.cost, self.index, self.sim, self.frame = frame.costs.cost, frame.n, sim, frame

    def slack_us(self, q):
        sim, now, fr = self.sim, self.frame.now, self.frame
        hard = self.cost("prefill", 0, q) + self.cost("action", 0, q)
        if not sim.paced:
            return max(0, fr.open + sim.pipe.period - now - hard)
        ticks = []
        for s in sim.sessions:
            if s is not fr.session and sim.has(s, s.n) and s.tick(s.n) <= now:
                return 0
            ticks.append(s.tick(max(0, (now - s.offset) // s.period + 1)))
        return max(0, min(ticks) - now - hard)


class Frame:
    """One frame of one session while it has the device."""

    def __init__(self, sim, session, tick, now):
        self.sim, self.session, self.n, self.tick = sim, session, session.n, tick
        self.open = self.now = now
        self.deadline = tick + session.hard_us
        self.excess = self.tokens = self.rows = 0
        table = sim.costs
        for change in sim.scenario.get("costs_from", []):
            if change["frame"] <= self.n:
                table = Costs(change["costs"], sim.pipe)
        self.costs = table

    def mine(self, key):
        """The entries of a scenario list that speak of this frame."""
        return [e for e in self.sim.scenario.get(key, [])
                if e["frame"] == self.n and e.get("session") in (None, self.session.name)]

    def emit(self, event, **fields):
        order = FRAME
        self.sim.emit(self.now, order, event, self.n, self.session, fields)

    def kv(self, op, kv=None, **fields):
        self.emit("kv", op=op, kv=kv or self.sim.pipe.kv, **fields)

    def work(self, node, us, worst):
        """A launch of a node with the spikes of this frame; what is above p99 is the device's."""
        at = self.now
        yield us + sum(s["add_us"] for s in self.mine("spikes") if s["node"] == node)
        self.excess += max(0, self.now - at - worst)

    def hard(self, name):
        yield from self.work(name, self.costs.launch(name, 0.5), self.costs.launch(name, 0.99))

    def drop(self, r, event, **fields):
        self.emit(event, request=r.id, **fields)
        if r.stored:
            self.kv("remove", request=r.id, tokens=self.sim.pipe.tokens + r.done)
        self.sim.requests.pop(r.id, None)

    # 2: cancellations and overdue requests; 3: arrivals
    def requests(self):
        sim = self.sim
        for c in self.mine("cancel"):
            r = sim.requests.get(c["request"])
            if r:
                self.drop(r, "cancel", live=True)
            else:
                self.emit("cancel", request=c["request"], live=False)
        for r in sim.live():
            if sim.pipe.shed and r.deadline < self.now:
                self.drop(r, "shed", reason="deadline")
        wanted = [a.get("max_tokens", sim.pipe.max_tokens) for a in self.mine("arrivals")] \
            if sim.pipe.talk else []
        if self.session.every and self.n % self.session.every == 0 and sim.pipe.talk:
            wanted.insert(0, sim.pipe.max_tokens)
        for max_tokens in wanted:
            i, sim.arrived = sim.arrived, sim.arrived + 1
            self.emit("arrive", request=i, node=sim.pipe.talk, max_tokens=max_tokens)
            if len(sim.requests) >= sim.pipe.slots:
                self.emit("refuse", request=i, reason="no kv slot")
                continue
            eos = sim.scenario.get("eos", {}).get(str(i))
            sim.requests[i] = Request(i, max_tokens, self.now, self.n, sim.pipe.soft_us, eos)
            self.emit("admit", request=i)

    # 4 and 5
    def decide(self):
        sim = self.sim
        self.late = sum(e["us"] for e in self.mine("late"))
        if self.late:
            self.now = max(self.now, self.tick + self.late)
            self.emit("input", late_us=self.late)
        for change in sim.scenario.get("params", []):
            if change["frame"] <= self.n and id(change) not in sim.changed:
                sim.changed.add(id(change))
                sim.params.update({k: v for k, v in change.items() if k != "frame"})
        d = self.plan = Decision(sim.pipe)
        sim.decide(View(sim, self), d)
        d.settle()
        for i in d.shed:
            d.k.pop(i, None)
        self.launches = d.launches(sim.pipe.batches[-1])
        live = sim.live()
        self.new = [r for r in live if not r.stored and r.id not in d.shed]
        self.emit("plan", policy=sim.policy,
                  decode=[[i, k] for k, rows in self.launches for i in rows],
                  paused=[r.id for r in live if r.id not in d.k and r.id not in d.shed],
                  unshared=[r.id for r in self.new if r.id in d.private],
                  snapped=d.snapped, notes=d.notes)
        for r in live:
            if r.id in d.shed:
                self.drop(r, "shed", reason=d.shed[r.id])

    # 6: a generator that yields the work of each launch and goes on when it is done
    def hard_part(self):
        sim = self.sim
        self.kv("alloc", sim.pipe.frame_kv, tokens=sim.pipe.tokens)
        for name in (sim.pipe.see, sim.pipe.act):
            at = self.now
            self.emit("start", node=name)
            yield from self.hard(name)
            self.emit("end", node=name, us=up(self.now - at))
        late = self.now > self.deadline
        self.over = max(0, self.now - self.deadline)
        self.emit("release", node=sim.pipe.act, late=late, age_us=up(self.now - self.tick))
        self.session.known.append((self.now, self.n))
        if late:
            sim.due(self.session, self.n, self.deadline, HANDOUT, False)
        else:
            sim.due(self.session, self.n, self.now, FRAME, True)

    # 7 and 8
    def soft_part(self):
        sim, see = self.sim, self.sim.pipe.see
        for r in self.new:
            if r.id in self.plan.private:
                self.kv("alloc", request=r.id, tokens=sim.pipe.tokens)
                at = self.now
                self.emit("start", node=see, request=r.id)
                yield from self.hard(see)
                self.emit("end", node=see, us=up(self.now - at), request=r.id)
            else:
                self.kv("fork", **{"from": sim.pipe.frame_kv}, request=r.id, tokens=sim.pipe.tokens)
            self.kv("store", request=r.id)
            r.stored = True
        for k, rows in self.launches:
            yield from self.launch(k, rows)

    def launch(self, k, rows):
        sim, at, talk = self.sim, self.now, self.sim.pipe.talk
        self.kv("retrieve", requests=rows)
        self.kv("batch", requests=rows)
        self.emit("start", node=talk, requests=rows, batch=len(rows),
                  padded=self.costs.padded(len(rows)), k=k)
        yield from self.work(talk, k * self.costs.step(len(rows), 0.5),
                             k * self.costs.step(len(rows), 0.99))
        self.emit("end", node=talk, us=up(self.now - at))
        made = {i: min(k, sim.requests[i].end - sim.requests[i].done) for i in rows}
        for i in rows:
            self.kv("append", request=i, tokens=made[i])
        self.kv("unbatch", requests=rows)
        for i in rows:
            r = sim.requests[i]
            r.done += made[i]
            self.emit("tokens", request=i, n=made[i], done=r.done)
            if r.done < r.end:
                self.kv("update", request=i, tokens=sim.pipe.tokens + r.done)
            else:
                self.drop(r, "finish", reason=r.reason, tokens=r.done, frames=self.n - r.frame + 1,
                          latency_us=up(self.now - r.born))
        self.tokens += sum(made.values())
        self.rows += len(rows)

    def run(self):
        """Sections 2 and 4: both parts in turn, or side by side on two partitions."""
        self.emit("frame", tick_us=up(self.tick), deadline_us=up(self.deadline))
        self.requests()
        self.decide()
        parts = [self.hard_part(), self.soft_part()]
        if self.plan.partition:
            self.side_by_side(parts)
        else:
            for part in parts:
                for us in part:
                    self.now += us
        self.kv("free", self.sim.pipe.frame_kv, tokens=self.sim.pipe.tokens)

    def side_by_side(self, parts):
        left = [next(p, None) for p in parts]
        while any(us is not None for us in left):
            slow = self.costs.contention if None not in left else 1
            step = min(us for us in left if us is not None)
            self.now += step * slow
            for i in (0, 1):
                if left[i] is not None:
                    left[i] -= step
                    if left[i] == 0:
                        left[i] = next(parts[i], None)

    def finish(self, waited):
        """Section 3: was it a miss, and why. `waited`: the device's excess in frames before it."""
        if self.sim.paced:
            self.over = max(self.over, self.now - self.session.tick(self.n + 1))
        missed, cause, gpu = self.over > 0, "none", self.excess + waited
        if missed:
            cause = "plan"
            if self.late >= self.over:
                cause = "input"
            elif gpu >= self.over:
                cause = "gpu"
            elif self.late + gpu >= self.over:
                cause = "input" if self.late >= gpu else "gpu"
        self.emit("frame_end", us=up(self.now - self.open), tokens=self.tokens, rows=self.rows,
                  in_flight=len(self.sim.requests), missed=missed, cause=cause,
                  overrun_us=up(self.over))
        if self.sim.policy == "slack_k":
            observe_slack_k(self.sim.state, self.sim.params, missed, cause)


class Simulation:
    def __init__(self, doc, costs, scenario, policy, params):
        self.pipe, self.scenario, self.policy = Pipeline(doc), scenario, policy
        self.costs = Costs(costs, self.pipe)
        self.paced = scenario.get("clock") == "paced"
        self.decide, defaults = POLICIES[policy]
        self.params, self.state = {**defaults, **params}, {}
        self.sessions = [Session(self.pipe, s, i)
                         for i, s in enumerate(scenario.get("sessions", [{}]))]
        self.requests, self.arrived, self.events, self.changed = {}, 0, [], set()

    def live(self):
        return sorted(self.requests.values(), key=lambda r: r.id)

    def emit(self, t, order, event, n, session, fields):
        e = {"t_us": up(t), "event": event, "frame": n}
        if session.name is not None:
            e["session"] = session.name
        e.update(fields)
        place = (session.tick(n), session.order) if order in (HANDOUT, SKIP) else (0, 0)
        self.events.append(((t, order, place, len(self.events)), e))

    def has(self, s, n):
        if "frames" in self.scenario:
            return n < self.scenario["frames"]
        return s.tick(n) < self.scenario["until_us"]

    def due(self, session, n, t, order, in_time):
        if "handout" in self.scenario:
            self.emit(t, order, "handout", n, session, {"source": None, "actions": None})
            session.due.append((self.events[-1], in_time))

    def run_paced(self):
        now, ended = 0, []
        while any(self.has(s, s.n) for s in self.sessions):
            waiting = [s for s in self.sessions if self.has(s, s.n)]
            now = max(now, min(s.tick(s.n) for s in waiting))
            s = min((s for s in waiting if s.tick(s.n) <= now),
                    key=lambda s: (s.tick(s.n) + s.hard_us, s.order))
            frame = Frame(self, s, s.tick(s.n), now)
            frame.run()
            frame.finish(sum(excess for end, excess in ended if end > frame.tick))
            ended.append((frame.now, frame.excess))
            now, s.n = frame.now, s.n + 1
            while self.has(s, s.n) and s.tick(s.n) < now:
                tick = s.tick(s.n)
                self.emit(tick, SKIP, "skip", s.n, s, {"tick_us": tick})
                self.due(s, s.n, tick + s.hard_us, HANDOUT, False)
                s.n += 1

    def run_saturated(self):
        now, s = 0, self.sessions[0]
        while self.has(s, s.n) if "frames" in self.scenario else now < self.scenario["until_us"]:
            frame = Frame(self, s, now, now)
            frame.run()
            frame.finish(0)
            now, s.n = frame.now, s.n + 1

    def run(self):
        self.run_paced() if self.paced else self.run_saturated()
        for s in self.sessions:
            Robot(self.pipe, self.scenario).serve(s)
        return [e for _, e in sorted(self.events, key=lambda x: x[0])]


def simulate(doc, costs, scenario, policy, params):
    return Simulation(doc, costs, scenario, policy, params).run()
