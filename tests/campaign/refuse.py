"""refuse.py - memory that runs out in `tectum serve`.  python3 tests/campaign/refuse.py PROGRAM LIBRARY SECONDS [SEED]

One allocation of the server fails, or one and all behind it, from its start to its end; LIBRARY is
refuse.c. It must refuse to start with exit code 4 and a word of memory, or serve: a robot's answers
are then right, or it is told an error, or its connection ends. It never ends by a signal and never
hangs. Prints one line of JSON.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from serve_client import Array, Socket  # noqa: E402

PIPELINE = "pipelines/demo_metaworld.lua"
SIDE, LIMIT_S = 64, 30
picture = Array("|u1", [SIDE, SIDE, 3], bytes(SIDE * SIDE * 3))
OBSERVATION = {"observation/image": picture, "observation/wrist_image": picture,
               "observation/state": Array.floats([0.0, 0.6, 0.2, 1.0]), "prompt": "press the button",
               "tectum": {"seed": 7}}
TEXT = {**OBSERVATION, "tectum": {"seed": 7, "tasks": ["action", "text"]}}


def talk(port, control, program):
    """What a robot and an operator do: the actions that came, or None where it was told an error."""
    rows = None
    try:
        s = Socket(port, timeout=LIMIT_S)
        s.reply()
        rows = s.infer(OBSERVATION)["actions"].data
        s.infer(TEXT)
        s.send({"prompt": 3})
        s.message()
        s.close()
    except (AssertionError, EOFError, OSError) as e:
        if isinstance(e, TimeoutError):
            raise
    subprocess.run([program, "policy", "load", "greedy", "--control", control], capture_output=True,
                   timeout=LIMIT_S)
    subprocess.run([program, "policy", "status", "--control", control], capture_output=True,
                   timeout=LIMIT_S)
    return rows


def one(program, library, box, fail_at, for_ever):
    """Exit status, standard error, actions, allocations."""
    control, count = os.path.join(box, "control"), os.path.join(box, "count")
    env = {**os.environ, "LD_PRELOAD": library, "FAIL_AT": str(fail_at), "FAIL_COUNT": count}
    if for_ever:
        env["FAIL_ON"] = "1"
    p = subprocess.Popen([program, "serve", PIPELINE, "--port", "0", "--threads", "1", "--late-ok",
                          "--control", control], env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    rows = None
    try:
        line = p.stdout.readline()
        if " on ws://" in line:
            rows = talk(int(line.split("ws://")[1].split()[0].split(":")[-1]), control, program)
            p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        p.kill()
        return "hangs", p.communicate()[1], rows, 0
    calls = int(open(count).read()) if os.path.exists(count) else 0
    return p.returncode, err, rows, calls


def main():
    program, library, seconds = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), float(sys.argv[3])
    dice = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    done = {"runs": 0, "refused": 0, "served": 0, "bad": 0}
    with tempfile.TemporaryDirectory() as box:
        status, err, right, calls = one(program, library, box, 0, False)
        assert status == 0 and right and calls > 100, (status, err, calls)
        done["allocations"] = calls
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            at, for_ever = dice.randrange(1, calls + 1), dice.random() < 0.5
            status, err, rows, _ = one(program, library, box, at, for_ever)
            refused = status == 4 and ("memory" in err or " bytes" in err)  # or how many it needs
            fine = refused or (status == 0 and rows in (None, right))
            done["runs"] += 1
            done["refused"] += refused
            done["served"] += status == 0
            if not fine:
                done["bad"] += 1
                print("refuse.py: allocation %d of %d fails%s: %s: %s" % (
                    at, calls, " and all behind it" if for_ever else "", status, err[-600:]),
                    file=sys.stderr)
    print(json.dumps(done))
    return done["bad"] > 0


if __name__ == "__main__":
    sys.exit(main())
