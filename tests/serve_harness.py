"""serve_harness.py - what the tests of `tectum serve` that start their own servers share: a server for
each test, the robot's observation, and a main that prints TAP."""

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from serve_client import Array, Socket

PROGRAM = sys.argv[1]
SLOW = float(os.environ.get("TEST_SLOWNESS", "1"))  # sanitizers take their time
SIDE = 64
picture = Array("|u1", [SIDE, SIDE, 3], bytes(SIDE * SIDE * 3))
OBSERVATION = {"observation/image": picture, "observation/wrist_image": picture,
               "observation/state": Array.floats([0.0, 0.6, 0.2, 1.0]), "prompt": "press the button"}
BOX = tempfile.mkdtemp()  # for files of tests
atexit.register(shutil.rmtree, BOX)
tests, servers = [], []


def test(function):
    tests.append(function)
    return function


def check(x, *what):
    if not x:
        raise AssertionError(what)


def write_safetensors(path, arrays):
    """NumPy arrays of bytes and float32 by name."""
    head, data = {}, b""
    for name, x in arrays.items():
        head[name] = {"dtype": {"u1": "U8", "f4": "F32"}[x.dtype.str[1:]], "shape": list(x.shape),
                      "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


def variant(name, text):
    """A pipeline file beside copies of those that the project ships."""
    folder = os.path.join(BOX, "pipelines")
    if not os.path.isdir(folder):
        shutil.copytree("pipelines", folder, ignore=shutil.ignore_patterns("checkpoints"))
    path = os.path.join(folder, name + ".lua")
    with open(path, "w") as f:
        f.write(text)
    return path


# Robots at the same server, and what is told of their arms; numbers that float32 has.
STATES = {"left": [0.0, 0.5, 0.25, 1.0], "right": [0.125, 0.625, 0.25, 0.0]}


def special(line):
    """The bundled demo with a robot whose description is changed by a line of Lua. Needs --root."""
    return variant("special", 'local robot = include "robots/metaworld.lua"\n%s\n'
                   'return extend("demo_metaworld.lua", { robot = robot })\n' % line)


def openpi_in_turn(server, order, shared=False, **asked):
    """Chunks that openpi's clients get, of a connection for each robot; shared: of one for all."""
    connections, got = {}, []
    for who in order:
        key = shared or who
        if key not in connections:
            connections[key] = server.connect()
        observation = {**OBSERVATION, "observation/state": Array.floats(STATES[who])}
        got.append(connections[key].infer({**observation, "tectum": asked} if asked else observation)["actions"].data)
    return got


def told_apart(start, chunks, made=list):
    """Steps are measured from a robot's own last command, and its ensemble is of its own chunks. `start` a server of the
    gateway, which gives `chunks(server, order)`; `made`: the same of what openpi's clients get."""
    order = ["left", "right", "left", "right", "right", "left"]
    for line in ("robot.actions.limits = { max_step = 0.05 }", "robot.actions.ensemble = 0.01; robot.execute = 1"):
        path = special(line)
        one, two, three = (start("--root", ".", pipeline=path) for _ in range(3))
        expected = made(openpi_in_turn(one, order))
        check(made(openpi_in_turn(two, order, shared=True)) != expected, line)  # else this test would not see it
        check(chunks(three, order) == expected, line)


def key_file(key):
    path = os.path.join(BOX, "key")
    with open(path, "w") as f:
        f.write(key + "\n")
    os.chmod(path, 0o600)
    return path


class Server:
    """A server of `pipeline`. limit: descriptors that it may open; env: variables over ours."""

    tls = None  # an ssl.SSLContext of its clients

    def __init__(self, pipeline, *options, env=None, limit=None):
        threads = [] if "--threads" in options else ["--threads", "1"]
        command = [PROGRAM, "serve", pipeline, "--port", "0", *threads, *options]
        if limit:
            command = ["sh", "-c", "ulimit -n %d; exec \"$@\"" % limit, "sh", *command]
        self.p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **(env or {})})
        servers.append(self.p)
        self.line = self.p.stdout.readline()
        scheme = " on wss://" if self.tls else " on ws://"
        check(scheme in self.line, self.line, self.p.poll() is not None and self.p.stderr.read())
        self.port = int(self.line.split(scheme)[1].split()[0].split(":")[-1])

    def connect(self, headers=""):
        s = Socket(self.port, headers=headers, timeout=20 * SLOW, tls=self.tls)
        check(list(s.reply()) == ["tectum"])
        return s

    def cpu_s(self):
        fields = open("/proc/%d/stat" % self.p.pid).read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, how=signal.SIGTERM):
        """Its exit status, what it printed and what it said."""
        self.p.send_signal(how)
        out, err = self.p.communicate(timeout=30 * SLOW)
        return self.p.returncode, out, err


class Servers(Server):
    """One server of these pipelines; ports[i] is the i-th one's."""

    def __init__(self, *pipelines, options=(), port="0"):
        threads = [] if "--threads" in options else ["--threads", "1"]
        command = [PROGRAM, "serve", *pipelines, "--port", port, *threads, *options]
        self.p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        servers.append(self.p)
        self.lines = [self.p.stdout.readline() for _ in pipelines]
        check(all("ws://" in x for x in self.lines), self.lines, self.p.poll() is not None and self.p.stderr.read())
        self.ports = [int(re.search(r"ws://[0-9.]+:([0-9]+)", x).group(1)) for x in self.lines]

    def connect(self, i):
        s = Socket(self.ports[i], timeout=20 * SLOW)
        hello = s.reply()
        check(list(hello) == ["tectum"], hello)
        return s


def times(ways, rounds=300):
    """Print what the calls take by their names, one after the other in turns."""
    taken = {name: [] for name in ways}
    for _ in range(rounds):
        for name, ask in ways.items():
            begin = time.perf_counter()
            ask()
            taken[name].append(1e3 * (time.perf_counter() - begin))
    for name, ms in taken.items():
        ms.sort()
        print("%-24s p50 %6.2f  p99 %6.2f  max %6.2f ms" % (name, ms[rounds // 2], ms[rounds * 99 // 100], ms[-1]))


def end_servers():
    while servers:
        p = servers.pop()
        if p.poll() is None:
            p.kill()
        p.wait()


def main():
    print("1..%d" % len(tests))
    failed = 0
    for i, t in enumerate(tests):
        try:
            skip = t()
            print("ok %d - %s%s" % (i + 1, t.__name__, " # SKIP " + skip if skip else ""), flush=True)
        except Exception as e:  # noqa: BLE001
            failed += 1
            print("not ok %d - %s" % (i + 1, t.__name__), flush=True)
            print("# %r" % (e,), file=sys.stderr, flush=True)
        end_servers()
    return failed > 0
