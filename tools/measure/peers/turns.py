"""turns.py - sides in turn (A B A C A ...), quantiles of their frames, and ratios of turns that follow each other."""
import math
import os


def quantile(values, q):
    """The smallest value that a part q of all is not larger than."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def middle(values):
    ordered = sorted(values)
    n = len(ordered)
    return 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])


def figure(x):
    """A number for JSON; None where it was not measured."""
    return None if math.isnan(x) else round(x, 3)


def take_turns(ours, peers, rounds, frames):
    """Every peer's turn stands between two of ours, `frames` in each. -> by peer: its time over ours, its processor time over ours."""
    ratios, cpu = {p.name: [] for p in peers}, {p.name: [] for p in peers}
    ours.turn(frames)
    for _ in range(rounds):
        for peer in peers:
            peer.turn(frames)
            ours.turn(frames)
            beside = 0.5 * (middle(ours.turns[-2]) + middle(ours.turns[-1]))
            ratios[peer.name].append(middle(peer.turns[-1]) / beside)
            cpu[peer.name].append(peer.cpu[-1] / (0.5 * (ours.cpu[-2] + ours.cpu[-1])))
    return ratios, cpu


def of_side(side):
    """A side's figures as JSON."""
    ms = [x for turn in side.turns for x in turn]
    return {"name": side.name, **side.about, "n": len(ms), "best_ms": round(min(ms), 3), "p50_ms": round(middle(ms), 3),
            "p99_ms": round(quantile(ms, 0.99), 3), "max_ms": round(max(ms), 3), "cpu_ms": figure(middle(side.cpu)),
            "waited_ms": figure(middle(side.waited))}


def of_ratio(ratios, cpu, goal):
    """ratios: the peer's time over ours, a turn each. goal: [floor, stretch] of it, or None."""
    return {"ratio": round(middle(ratios), 3), "least": round(min(ratios), 3), "most": round(max(ratios), 3),
            "cpu_ratio": figure(middle(cpu)), "goal": goal, "turns": len(ratios)}


def load():
    return [round(x, 2) for x in os.getloadavg()]


def nice(priority):
    """This process at another priority; as it is, where that is not allowed."""
    try:
        os.nice(priority)
    except PermissionError:
        pass
