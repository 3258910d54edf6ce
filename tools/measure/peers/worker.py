"""worker.py - what every side of a comparison answers: frames when asked for, their times, its newest results as a file.

A worker calls `serve`. Lines on standard input are {"n": N}, answered by {"ms": [N times]}, or {"save": FILE.npy}, which writes
what the newest frame gave. What libraries print goes to standard error.
"""
import json
import os
import sys
import time

import numpy as np

ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def timed(run):
    """run() -> result; -> milliseconds, result."""
    start = time.perf_counter()
    result = run()
    return 1e3 * (time.perf_counter() - start), result


WARM_UP = 2  # frames of every side before the first that counts


def serve(frame, about):
    """frame() -> milliseconds, an array. about: what this side is, of JSON."""
    def say(**what):
        ANSWERS.write(json.dumps(what) + "\n")
        ANSWERS.flush()
    result = None
    for _ in range(WARM_UP):
        _, result = frame()
    say(about=about)
    for line in sys.stdin:
        order = json.loads(line)
        if "save" in order:
            np.save(order["save"], np.asarray(result))
            say(saved=order["save"])
            continue
        ms = []
        for _ in range(order["n"]):
            took, result = frame()
            ms.append(took)
        say(ms=ms)
