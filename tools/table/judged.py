"""What came of many episodes: shares with standard errors, the same goals of two rows beside each other, equal bytes, late frames."""
import json
import math

import goals

COLUMNS = ("kind", "seed", "right", "skills done", "skills", "control steps", "observations", "server's processor seconds", "sha256 of the actions")


def share(hits):
    """-> share and its standard error in per cent; of an empty list nothing"""
    if not hits:
        return None
    p = sum(hits) / len(hits)
    return 100 * p, 100 * math.sqrt(p * (1 - p) / len(hits))


def cell(hits):
    return f"{sum(hits)}/{len(hits)}" if hits else "-"


def written(figure):
    return f"{figure[0]:.1f} +- {figure[1]:.1f} %" if figure else "-"


def against(rows, base):
    """Goals that both have: how many, right here alone, right there alone, the difference in per cent and its standard error."""
    there = {(r["kind"], r["seed"]): r for r in base}
    pairs = [(r["right"], there[r["kind"], r["seed"]]["right"]) for r in rows if (r["kind"], r["seed"]) in there]
    if not pairs:
        return None
    n, gained, lost = len(pairs), sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    mean = (gained - lost) / n
    return {"goals": n, "right here alone": gained, "right there alone": lost, "difference": 100 * mean,
            "standard error": 100 * math.sqrt(max(0.0, (gained + lost) / n - mean * mean) / n)}


def same_bytes(rows):
    """Over all episodes of these rows: inputs of the arm (pictures, state, noise, the planner's sentence) that came in more than one
    row, and of those the ones whose actions were not the same bytes everywhere."""
    seen = {}
    for r in rows:
        for given, came in r["arm"]:
            seen.setdefault(given, {}).setdefault(came, set()).add(r["row"])
    shared = [came for came in seen.values() if len(set().union(*came.values())) > 1]
    return {"inputs": len(seen), "in several rows": len(shared), "with other bytes": sum(len(came) > 1 for came in shared)}


def added(maps):
    out = {}
    for m in maps:
        for key, n in m.items():
            out[key] = out.get(key, 0) + n
    return out


def virtual(rows):
    """Late frames on the virtual clock by policy, all episodes together."""
    out = {}
    for r in rows:
        for policy, v in r.get("virtual", {}).items():
            o = out.setdefault(policy, {"episodes": 0, "observations": 0, "skipped": 0, "missed": 0, "causes": {}})
            o["episodes"] += 1
            for key in ("observations", "skipped", "missed"):
                o[key] += v[key]
            o["causes"] = added((o["causes"], v["causes"]))
    return out


def judge(rows, base):
    """The figures of one row."""
    frames, seconds = sum(r["frames"] for r in rows), sum(r["server_processor_s"] for r in rows)
    there = {(r["kind"], r["seed"]): r["sha256"] for r in base}
    return {"by kind": {k: cell([r["right"] for r in rows if r["kind"] == k]) for k in goals.KINDS},
            "right": sum(r["right"] for r in rows), "goals": len(rows), "share": share([r["right"] for r in rows]),
            "to whole": against(rows, base), "as whole, byte for byte": sum(there.get((r["kind"], r["seed"])) == r["sha256"] for r in rows),
            "control steps": sum(r["steps"] for r in rows) / len(rows), "server ms an observation": 1e3 * seconds / frames,
            "late": added(r["missed"] for r in rows), "virtual clock": virtual(rows)}


def printed(name, j):
    cells = "  ".join(f"{j['by kind'][k]:>7s}" for k in goals.KINDS)
    d = j["to whole"]
    more = f"{d['difference']:+6.1f} +- {d['standard error']:.1f} of {d['goals']}" if d and name != "whole" else ""
    print(f"{name:24s} {cells}  {j['right']:4d}/{j['goals']:<4d} {written(j['share']):>15s}  {more:>22s}  {j['control steps']:7.0f}"
          f"  {j['server ms an observation']:7.1f}  {j['late'].get('total', 0)}", flush=True)


def report(about, episodes, file):
    """Prints the table and writes it with all seeds."""
    by = {}
    for r in sorted(episodes, key=lambda r: (r["kind"], r["seed"])):
        if about["rows"].get(r["row"], {}).get("options") == r["options"]:
            by.setdefault(r["row"], []).append(r)
    by = {name: by[name] for name in about["rows"] if name in by}
    print(f"{'':24s} " + "  ".join(f"{k:>7s}" for k in goals.KINDS) + f"  {'right':>9s} {'':15s}  {'to whole':>22s}  {'steps':>7s}  {'ms':>7s}  late")
    judged = {name: judge(rows, by.get("whole", ())) for name, rows in by.items()}
    for name, j in judged.items():
        printed(name, j)
    policies = {name: [r for r in by.get(name, ())] for name in ("whole", "isolated", "oxygen", "slack_k", "chaos")}
    equal = same_bytes([r for rows in policies.values() for r in rows])
    print(f"the arm's inputs under several policies: {equal['in several rows']}, of them with other bytes: {equal['with other bytes']}")
    for policy, v in judged.get("whole", {}).get("virtual clock", {}).items():
        print(f"on a virtual clock, {policy}: {v['missed']} of {v['observations']} observations late {v['causes']}, {v['skipped']} skipped; {v['episodes']} episodes")
    row = lambda r: [r["kind"], r["seed"], int(r["right"]), r["reached"], len(r["skills"]), r["steps"], r["frames"], r["server_processor_s"], r["sha256"][:16]]
    text = {**about, "the same inputs under several policies": equal, "judged": judged, "columns": COLUMNS,
            "episodes": {name: [row(r) for r in rows] for name, rows in by.items()}}
    head = json.dumps({k: v for k, v in text.items() if k != "episodes"}, indent=1)
    lines = ",\n".join(f"  {json.dumps(name)}: [\n" + ",\n".join("   " + json.dumps(r) for r in rows) + "]" for name, rows in text["episodes"].items())
    file.write_text(head[:-2] + ',\n "episodes": {\n' + lines + "}}\n")
