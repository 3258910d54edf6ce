"""python_aarch64.py - the Python package on 64-bit ARM: actions and text, an error with its place, the robot's client.

usage: python_aarch64.py PROGRAM CHECKS_BEFORE, by a Python of that machine; PROGRAM is started and runs there, too.
Times are printed and not judged: under qemu they say nothing of a robot.
"""

import json
import subprocess
import sys
import time

begun = time.monotonic()
import numpy as np  # noqa: E402

between = time.monotonic()
import tectum  # noqa: E402

imported = time.monotonic()
PROGRAM, count, failed = sys.argv[1], int(sys.argv[2]), 0


def check(text, holds, said=""):
    global count, failed
    count += 1
    print(f"{'ok' if holds else 'not ok'} {count} - {text}", flush=True)
    if not holds:
        failed += 1
        print(f"# {said}", file=sys.stderr)


def of_run(observation):
    """What the program prints for an observation of one value in each picture."""
    said = []
    for name, value in observation.items():
        said += ["-i", f"{name}={value if isinstance(value, str) else json.dumps(value.tolist())}"]
    out = subprocess.run([PROGRAM, "run", "pipelines/demo_metaworld.lua", "--format", "json", "--seed", "3", "--threads", "1", *said],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    return np.array(json.loads(out.splitlines()[0])["actions"]["act"])


print(f"# import: {between - begun:.2f} s for NumPy, {imported - between:.2f} s for tectum (under qemu)")
picture = np.full((64, 64, 3), 90, np.uint8)
observation = {"observation/image": picture, "observation/wrist_image": picture, "prompt": "press the button",
               "observation/state": np.array([0, 0.625, 0.25, 1], np.float32)}
begun = time.monotonic()
with tectum.open("demo_metaworld", threads=1, seed=3) as robot:
    opened = time.monotonic()
    result = robot.infer(observation, text=True, timeout=300)
    print(f"# opened in {opened - begun:.2f} s, first actions and text {time.monotonic() - opened:.2f} s later (under qemu)")
    check("actions and text come", result.actions.shape == (16, 4) and str(result.text).startswith("move"), result)
    again = np.from_dlpack(result.actions)
    check("by DLPack without a copy", again.ctypes.data == result.actions.ctypes.data)
    check("the actions are those of the program", result.actions.tobytes() == of_run(observation).tobytes(), result.actions[0])
try:
    tectum.open("demo_metaworld", set={"nodes.act.deadline.ms": 120})
    check("an error has its place", False)
except tectum.Error as error:
    check("an error has its place", error.place and error.place.line == 1, error)
with tectum.AsyncClient("ws://127.0.0.1:1", rate_hz=20) as client:
    client.observe(observation)
    try:
        client.ready(timeout=20)
        check("the client says why there are no actions", False)
    except tectum.TimeError as error:
        check("the client says why there are no actions", "127.0.0.1" in str(error), error)
print(f"1..{count}")
sys.exit(failed != 0)
