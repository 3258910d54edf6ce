"""schedule_policies.py - the policies of schedule_reference.py, written a second time.

A policy is a function of F, what it sees of a frame, and D, its decision; see section 3 of
golden/schedules/README.md.
"""
import math
from fractions import Fraction


class Decision:
    """The default plan shares the prefix and pauses every request."""

    def __init__(self, pipe):
        self.ks, self.snapped = pipe.ks, 0
        self.k, self.group, self.prio, self.private, self.shed = {}, {}, {}, set(), {}
        self.partition, self.notes = None, {}

    def decode(self, i, k):
        self.k[i] = k

    def settle(self):
        """Snap down to a captured k; below the smallest one the row pauses."""
        for i, k in list(self.k.items()):
            fit = max((c for c in self.ks if c <= k), default=None)
            if fit != k:
                self.snapped += 1
            if fit is None:
                del self.k[i]
            else:
                self.k[i] = fit

    def launches(self, largest):
        groups, out = {}, []
        for i, k in self.k.items():
            groups.setdefault((self.group.get(i, 0), k), []).append((self.prio.get(i, 0), i))
        for (_, k), rows in groups.items():
            rows.sort()
            out.append((rows[0], k, rows))
        out.sort(key=lambda g: g[0])
        return [(k, [i for _, i in rows[at:at + largest]])
                for _, k, rows in out for at in range(0, len(rows), largest)]


def plan_oxygen(f, d):
    for r in f.req:
        d.decode(r.id, f.params["k"])


def plan_isolated(f, d):
    plan_shared_kv(f, d)
    d.private.update(r.id for r in f.req)


def plan_shared_kv(f, d):
    for place, r in enumerate(f.req, 1):
        d.decode(r.id, r.max)
        d.group[r.id] = place


def plan_batch_only(f, d):
    plan_oxygen(f, d)
    d.private.update(r.id for r in f.req)


def plan_parallel(f, d):
    plan_isolated(f, d)
    d.partition = "bg"


def plan_edf(f, d):
    k, q, fit = f.params["k"], f.params["q"], len(f.req)
    order, room = sorted(f.req, key=lambda r: r.deadline), f.slack_us(q)
    while fit > 0 and k * f.cost("decode", fit, q) > room:
        fit -= 1
    for place, r in enumerate(order[:fit]):
        d.decode(r.id, k)
        d.prio[r.id] = place
    d.notes["edf_batch"] = fit


def plan_slack_k(f, d):
    if not f.req:
        return
    steps = f.slack_us(0.99) * f.params["margin"] / f.cost("decode", len(f.req), 0.99)
    k = math.floor(min(f.state.setdefault("cap", 8.0), f.params["k_max"], steps))
    for r in f.req:
        if k >= 1:
            d.decode(r.id, k)
    d.notes["k"] = k


def observe_slack_k(state, params, missed, cause):
    cap = state.setdefault("cap", 8.0)
    if missed and cause == "plan":
        state["cap"] = max(1, cap / 2)
    else:
        state["cap"] = min(params["k_max"], cap + 0.1)


def objective_k(f, hard, n):
    """Section 5: the k with most tokens a second that fits for ever, or None."""
    m, period, q, best, best_tau = f.params["every"], f.params["period_us"], f.params["q"], None, 0
    for k in f.pipe.ks:
        life, total, longest, most = -(-n // k), 0, 0, 0
        for j in range(m):
            rows = -(-(life - j) // m) if j < life else 0
            t = hard + (k * f.cost("decode", rows, q) if rows else 0)
            total, longest, most = total + max(t, period), max(longest, t), max(most, rows)
        feasible = most <= f.pipe.slots and f.pipe.horizon * 1000000 >= f.params["f_min"] * longest
        if feasible and (best is None or Fraction(n) / Fraction(total) >= best_tau):
            best, best_tau = k, Fraction(n) / Fraction(total)
    return best


def plan_objective(f, d):
    if not f.req:
        return
    q, live, order = f.params["q"], len(f.req), list(f.req)
    hard = f.cost("prefill", 0, q) + f.cost("action", 0, q)

    def fits(us):
        return f.pipe.horizon * 1000000 >= f.params["f_min"] * us
    k, rows = objective_k(f, hard, max(r.max for r in f.req)), live
    if k is None or not fits(hard + k * f.cost("decode", live, q)):
        order.sort(key=lambda r: r.deadline)
        best = (0, 0, 0)
        for c in f.pipe.ks:
            for b in range(1, live + 1):
                t = hard + c * f.cost("decode", b, q)
                if fits(t):
                    best = max(best, (Fraction(b * c, t), c, b))
        k, rows = best[1], best[2]
        d.notes["rows"] = rows
    for place, r in enumerate(order[:rows]):
        d.decode(r.id, k)
        d.prio[r.id] = place
    d.notes["k"] = k


def plan_mixed(f, d):
    """Not a policy of the tree: groups, priorities, private prefills, pauses and sheds at once."""
    n = f.params["n"]
    for r in f.req:
        x = r.id * 7 + f.index * 3 + n
        if x % 4 == 0:
            d.private.add(r.id)
        if x % 11 == 10:
            d.shed[r.id] = "bored"
        elif x % 5:
            d.decode(r.id, 1 + x % 9)
        d.group[r.id] = r.id % 2
        d.prio[r.id] = x % 3


POLICIES = {
    "default": (lambda f, d: None, {}), "oxygen": (plan_oxygen, {"k": 5}),
    "isolated": (plan_isolated, {}), "shared_kv": (plan_shared_kv, {}),
    "batch_only": (plan_batch_only, {"k": 5}), "parallel": (plan_parallel, {}),
    "edf": (plan_edf, {"k": 5, "q": 0.99}), "slack_k": (plan_slack_k, {"k_max": 8, "margin": 0.95}),
    "objective": (plan_objective, {"f_min": 50, "every": 1, "period_us": 0, "q": 0.99}),
    "mixed": (plan_mixed, {"n": 0}),
}
