"""serve_frames.py - a server of a pipeline with tiny random weights answers four observations.

usage: PYTHONPATH=tests python3 tests/serve_frames.py PROGRAM PIPELINE"""

import sys

from serve_harness import Server, check
from serve_client import Array

picture = Array("|u1", [224, 224, 3], bytes(224 * 224 * 3))
s = Server(sys.argv[2], "--random-weights", "1", "--size", "tiny", "--late-ok")
c = s.connect()
for i in range(4):
    reply = c.infer({"observation/image": picture, "observation/wrist_image": picture, "prompt": "press the button",
                     "observation/state": Array.floats([0.1 * i] * 8)})
    check("actions" in reply, reply)
status, out, err = s.end()
check(status == 0, status, err)
