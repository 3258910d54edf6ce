"""python.py - what infer() takes beside the same calls of tectum.h, and what importing takes.

usage: python3 tools/measure/python.py [FRAMES]

Both ways are measured in turns, frame by frame, in one process: infer() with an observation of four
inputs, and tectum_submit and tectum_wait with structs that were filled once. What remains is the
work of Python.
"""

import subprocess
import sys
import time

import numpy as np

import tectum
from tectum.handle import ffi, lib
from tectum.values import Values

OBSERVATION = {
    "observation/image": np.full((64, 64, 3), 90, np.uint8),
    "observation/wrist_image": np.full((64, 64, 3), 30, np.uint8),
    "observation/state": np.zeros(4, np.float32),
    "prompt": "press the button",
}


def line(what, times_ns):
    p50, p99 = np.percentile(times_ns, [50, 99]) / 1e3
    print(f"{what:28} p50 {p50:8.1f} us  p99 {p99:8.1f} us  max {max(times_ns) / 1e3:8.1f} us")


def raw(engine, values, number, room, n, chunk):
    lib.tectum_submit(engine, values.values, values.n, 0, number, ffi.NULL)
    return lib.tectum_wait(engine, number[0], -1, room, n, chunk, ffi.NULL)


def frames(robot, count):
    values, number = Values(OBSERVATION), ffi.new("int64_t *")
    chunk, n = ffi.new("struct tectum_chunk *"), robot.rows * robot.columns
    room = ffi.new("double[]", n)
    engine = robot._handle.call(lambda opened: opened)
    both, apart = ([], []), []
    for i in range(2 * count):
        begin = time.perf_counter_ns()
        if i % 2 == 0:
            robot.infer(OBSERVATION)
        else:
            raw(engine, values, number, room, n, chunk)
        both[i % 2].append(time.perf_counter_ns() - begin)
        time.sleep(0.003)  # the frame's text goes on behind the actions
    for _ in range(count):
        begin = time.perf_counter_ns()
        Values(OBSERVATION)
        apart.append(time.perf_counter_ns() - begin)
    line("infer()", both[0])
    line("tectum_submit, tectum_wait", both[1])
    line("of it: inputs without copies", apart)


def imports(statement):
    took = []
    for _ in range(11):
        said = subprocess.run(
            [sys.executable, "-c", f"import time; t = time.perf_counter_ns(); {statement}; "
             "print(time.perf_counter_ns() - t)"], capture_output=True, check=True)
        took.append(int(said.stdout))
    return sorted(took)[5] / 1e6


numpy_ms = imports("import numpy")
print(f"import tectum {imports('import tectum'):.0f} ms, of which NumPy {numpy_ms:.0f} ms (medians of 11)")
with tectum.open("demo_metaworld", threads=1, policy="isolated") as robot:
    frames(robot, int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
