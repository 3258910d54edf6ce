"""serve_harness.py - what the tests of `tectum serve` that start their own servers share: a server for
each test, the robot's observation, and a main that prints TAP."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile

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


def variant(name, text):
    """A pipeline file beside copies of those that the project ships."""
    folder = os.path.join(BOX, "pipelines")
    if not os.path.isdir(folder):
        shutil.copytree("pipelines", folder, ignore=shutil.ignore_patterns("checkpoints"))
    path = os.path.join(folder, name + ".lua")
    with open(path, "w") as f:
        f.write(text)
    return path


class Server:
    """A server of `pipeline`. limit: descriptors that it may open; env: variables over ours."""

    def __init__(self, pipeline, *options, env=None, limit=None):
        command = [PROGRAM, "serve", pipeline, "--port", "0", "--threads", "1", *options]
        if limit:
            command = ["sh", "-c", "ulimit -n %d; exec \"$@\"" % limit, "sh", *command]
        self.p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **(env or {})})
        servers.append(self.p)
        self.line = self.p.stdout.readline()
        check(" on ws://" in self.line, self.line, self.p.poll() is not None and self.p.stderr.read())
        self.port = int(self.line.split("ws://")[1].split()[0].split(":")[-1])

    def connect(self, headers=""):
        s = Socket(self.port, headers=headers, timeout=20 * SLOW)
        check(s.reply() == {})
        return s

    def cpu_s(self):
        fields = open("/proc/%d/stat" % self.p.pid).read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, how=signal.SIGTERM):
        """Its exit status, what it printed and what it said."""
        self.p.send_signal(how)
        out, err = self.p.communicate(timeout=30 * SLOW)
        return self.p.returncode, out, err


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
        while servers:
            p = servers.pop()
            if p.poll() is None:
                p.kill()
            p.wait()
    return failed > 0
