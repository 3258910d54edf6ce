"""realtime_load.py - ticks of a paced robot beside programs that take every core, with and without --realtime, in turns.

usage: python3 tools/measure/realtime_load.py PROGRAM [--rounds N] [--ticks N]
Prints p50, p99 and max of the time from a tick until its actions left, and how many ticks missed.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


def number(option, otherwise):
    return int(sys.argv[sys.argv.index(option) + 1]) if option in sys.argv else otherwise


ROUNDS, TICKS = number("--rounds", 5), number("--ticks", 100)
CORES = len(os.sched_getaffinity(0))
WAYS = {"alone": (0, []), "beside load": (2 * CORES, []),
        "beside load, --realtime 50 --lock-memory": (2 * CORES, ["--realtime", "50", "--lock-memory"])}


def run(load, options, path):
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
    try:
        subprocess.run([PROGRAM, "run", "pipelines/demo_metaworld.lua", "--random-inputs", "1", "-n", str(TICKS), "--clock", "paced",
                        "--set", "frame.period_ms=20", "--set", "nodes.act.deadline.ms=15", "--format", "json", "--threads", "1", "--out", path,
                        *options], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finally:
        for p in busy:
            p.kill()
            p.wait()
    return [json.loads(line) for line in open(path)]


def main():
    taken = {name: [] for name in WAYS}
    missed = {name: 0 for name in WAYS}
    with tempfile.TemporaryDirectory() as box:
        for _ in range(ROUNDS):
            for name, (load, options) in WAYS.items():
                for tick in run(load, options, os.path.join(box, "ticks.jsonl")):
                    taken[name].append((tick["handed_us"] - tick["tick_us"]) / 1e3)
                    missed[name] += tick["missed"]
    print("%d ticks of 20 ms each, deadline 15 ms; %d cores, load of %d programs; Linux %s" % (ROUNDS * TICKS, CORES, 2 * CORES, platform.release()))
    for name, ms in taken.items():
        ms.sort()
        n = len(ms)
        print("%-44s p50 %6.2f  p99 %6.2f  max %6.2f ms, %d missed" % (name, ms[n // 2], ms[n * 99 // 100], ms[-1], missed[name]))


main()
