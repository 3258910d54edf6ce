"""robots.py - N robots on one server: as sessions of one pipeline, in turns, and one alone.

python3 tests/experiments/robots.py PROGRAM [ROBOTS] [ROUNDS]

Three servers of the demo's model run at once and are asked one after the other, so that a change of the
machine's pace meets all: one robot on a pipeline of one session, ROBOTS robots that take turns on such
a pipeline, and ROBOTS robots that have a session each. Each robot sends its next observation when it has the
reply before. Prints replies a second, and the time from a request to its reply as p50, p99 and max in ms.
"""

import os
import platform
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
PROGRAM = sys.argv[1]
ROBOTS = int(sys.argv[2]) if len(sys.argv) > 2 else 8
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
SECONDS, SIDE = 2.0, 64
from serve_client import Array, Socket  # noqa: E402

MANY = "pipelines/graphs/g24_many_robots.lua"


class Server:
    def __init__(self, sessions, robots):
        captures = [n for n in (1, 2, 4, 8, 16) if n < sessions] + [sessions]
        # slots for every robot's text, and the same texts for all
        self.p = subprocess.Popen(
            [PROGRAM, "serve", MANY, "--port", "0", "--threads", "1", "--late-ok", "--set", "frame.sessions=%d" % sessions,
             "--set", "frame.gather_ms=%d" % (2 if sessions > 1 else 0), "--set", "capture.sessions=%s" % captures, "--set",
             "resources.lang.slots=4"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.p.stdout.readline()
        if "ws://" not in line:
            sys.exit("robots.py: a server of %d sessions did not start" % sessions)
        port = int(line.split("ws://")[1].split()[0].split(":")[-1])
        self.robots = [Socket(port, timeout=60) for _ in range(robots)]
        for s in self.robots:
            s.reply()
        self.ms, self.seconds = [], 0.0

    def round(self):
        end, lists = time.perf_counter() + SECONDS, [[] for _ in self.robots]
        began = time.perf_counter()
        threads = [threading.Thread(target=drive, args=(s, i, end, lists[i])) for i, s in enumerate(self.robots)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.seconds += time.perf_counter() - began
        self.ms += [x for one in lists for x in one]


def observation(robot):
    picture = Array("|u1", [SIDE, SIDE, 3], bytes(x * (robot + 1) // 64 % 256 for x in range(SIDE * SIDE * 3)))
    return {"observation/image": picture, "observation/wrist_image": picture,
            "observation/state": Array.floats([0.1 * robot, 0.6, 0.2, 1.0]), "prompt": "press the button"}


def drive(s, robot, end, ms):
    message = observation(robot)
    while time.perf_counter() < end:
        began = time.perf_counter()
        s.infer(message)
        ms.append(1e3 * (time.perf_counter() - began))


def cpu():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def main():
    kinds = [("one robot", Server(1, 1)), ("%d in turns" % ROBOTS, Server(1, ROBOTS)),
             ("%d sessions" % ROBOTS, Server(ROBOTS, ROBOTS))]
    for _ in range(ROUNDS):
        for _, server in kinds:
            server.round()
    print("%s, %d processors; %s" % (cpu(), os.cpu_count(), " ".join(["python3", *sys.argv])))
    print("%-12s %10s %9s %9s %9s" % ("", "replies/s", "p50 ms", "p99 ms", "max ms"))
    for name, server in kinds:
        ms = sorted(server.ms)
        print("%-12s %10.1f %9.2f %9.2f %9.2f" % (name, len(ms) / server.seconds, ms[len(ms) // 2], ms[int(0.99 * (len(ms) - 1))],
                                                  ms[-1]))
        server.p.terminate()


main()
