"""main.py - tectum on this CPU beside its peers: rows in turns, ratios, ceilings of the same run; JSON, SVG and a table.

usage: tools/bench_peers [ROW ...] [options]; options.py has them
"""
import datetime
import json
import pathlib
import subprocess
import sys

import picture
import row
import table
import turns
from options import ROOT, options
from rows import ROWS


def ceilings(program, threads, priority):
    """What registers and memory allow in this minute: kernels.t --peaks, of one thread or of two, which is what it measures at most."""
    out = subprocess.run([program.parent / "kernels.t", "--peaks"], check=True, capture_output=True, text=True,
                         preexec_fn=lambda: turns.nice(priority)).stdout
    return json.loads(out.splitlines()[0 if threads == 1 else 1])


def machine(program):
    out = subprocess.run([program, "doctor", "--quick", "--format", "json"], check=True, capture_output=True, text=True).stdout
    said = json.loads(out)
    return {k: said[k] for k in ("cpu", "isa", "tier", "cores")} | {"memory_bytes": said["memory"]["total_bytes"],
                                                                   "kernel": said["scheduling"]["kernel"]}


def measure(one, setup, o):
    """-> a row's figures. Sides start one after the other; none computes while another is timed."""
    try:
        for side in [one.ours, *one.peers]:
            print(f"{one.name}: {side.name}", file=sys.stderr, flush=True)
            side.start()
        one.check(setup.work)
        before = {"load": turns.load(), **ceilings(o.program, o.threads, o.priority)}
        ratios, cpu = turns.take_turns(one.ours, one.peers, o.rounds, o.frames or one.frames)
        after = {"load": turns.load(), **ceilings(o.program, o.threads, o.priority)}
    finally:
        for side in [one.ours, *one.peers]:
            side.stop()
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    found = {"row": one.name, "what": one.what, "threads": o.threads, "date": datetime.date.today().isoformat(), "commit": commit,
             "machine": machine(o.program), "options": {k: getattr(o, k) for k in ("rounds", "frames", "layers", "priority")},
             "before": before, "after": after, "ours": turns.of_side(one.ours),
             "peers": [turns.of_side(p) | turns.of_ratio(ratios[p.name], cpu[p.name], one.goals[p.name])
                       | {"apart": one.distances.get(p.name)} for p in one.peers]}
    return found | (one.more(one, found) if one.more else {})


def main():
    o = options()
    o.out.mkdir(parents=True, exist_ok=True)
    path = o.out / "peers.json"
    kept = json.loads(path.read_text())["rows"] if path.exists() else []
    setup = row.Setup(ROOT, ROOT / "build/peers", o.program, o.threads, o.priority, [int(n) for n in o.cameras.split(",")], o.layers,
                      pathlib.Path(o.vla).resolve() if o.vla else None)
    failed = 0
    for name in o.rows or ROWS:
        for one in ROWS[name](setup):
            try:
                found = measure(one, setup, o)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as why:
                print(f"bench_peers: {one.name}: {why}", file=sys.stderr, flush=True)
                failed += 1
                continue
            print(table.of_row(found), flush=True)
            kept = table.with_row(kept, found)
            path.write_text(json.dumps({"schema": 2, "machine": found["machine"], "rows": kept}, indent=1) + "\n")
            (o.out / "peers.svg").write_text(picture.of_rows(table.of_the_newest(kept)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
