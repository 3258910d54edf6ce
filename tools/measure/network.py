"""network.py - a robot that asks ten times a second over a network that delays: how old its actions are, how many are late.

usage: python3 tools/measure/network.py PROGRAM [--rounds N] [--requests N] [--relay]
Networks are tried in turns, each with a connection of its own. They are made by `tc netem` in a network namespace of this
script's own, which changes nothing outside of it; where that is not permitted, or the kernel has no netem, the script says
SKIP and ends with 0. --relay: a program between the two that holds bytes back, in order; it loses none.
"""

import os
import platform
import random
import selectors
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests"))
from serve_client import Array, Socket  # noqa: E402

PROGRAM = sys.argv[1]
PERIOD_S = 0.1  # of the demo
# Delay each way and how much it varies, in ms; share of packets that is lost, in percent.
NETWORKS = {"a cable": (0, 0, 0), "5 ms each way": (5, 0, 0), "5 ms, varying by 4": (5, 4, 0), "20 ms each way": (20, 0, 0),
            "20 ms, varying by 15": (20, 15, 0), "60 ms each way": (60, 0, 0), "5 ms, 1 % lost": (5, 0, 1), "20 ms, 3 % lost": (20, 0, 3)}


def number(option, otherwise):
    return int(sys.argv[sys.argv.index(option) + 1]) if option in sys.argv else otherwise


def netem(*words):
    return subprocess.run(["tc", "qdisc", *words], capture_output=True, text=True)


def shape(delay, jitter, loss):
    """The loopback interface of this namespace: what goes either way passes it once."""
    done = netem("replace", "dev", "lo", "root", "netem", "limit", "100000", "delay", "%dms" % delay, "%dms" % jitter,
                 "loss", "%d%%" % loss)
    if done.returncode:
        sys.exit("network: " + done.stderr.strip())


class Relay:
    """Between a client and the server: each piece of bytes leaves a delay after it came, none before another."""

    def __init__(self, port):
        self.to, self.delay, self.jitter = port, 0.0, 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.to))
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    def carry(self, a, b):
        held, due, open_side = [], 0.0, True
        waits = selectors.DefaultSelector()
        waits.register(a, selectors.EVENT_READ)
        while open_side or held:
            left = max(0.0, held[0][0] - time.monotonic()) if held else None
            if open_side and waits.select(left):
                data = a.recv(65536)
                open_side = bool(data)
                due = max(due, time.monotonic() + self.delay + random.uniform(-self.jitter, self.jitter))
                held.append((due, data))
            elif not open_side and left:
                time.sleep(left)
            while held and held[0][0] <= time.monotonic():
                data = held.pop(0)[1]
                try:
                    b.sendall(data) if data else b.shutdown(socket.SHUT_WR)
                except OSError:
                    return


def ask(port, n):
    """Seconds from sending an observation to its actions, n times, and how often the server says `missed`."""
    picture = Array("|u1", [64, 64, 3], bytes(64 * 64 * 3))
    asked = {"observation/image": picture, "observation/wrist_image": picture, "prompt": "press the button",
             "observation/state": Array.floats([0.0, 0.6, 0.2, 1.0]), "tectum": {"reset": False}}
    s = Socket(port, timeout=60)
    s.reply()
    ages, missed, tick = [], 0, time.monotonic()
    for _ in range(n):
        tick = max(tick + PERIOD_S, time.monotonic())
        time.sleep(max(0.0, tick - time.monotonic()))
        begin = time.monotonic()
        missed += s.infer(asked)["tectum"]["missed"]
        ages.append(time.monotonic() - begin)
    s.close()
    return ages, missed


def measure(relay):
    server = subprocess.Popen([PROGRAM, "serve", "pipelines/demo_metaworld.lua", "--port", "0", "--threads", "1"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(server.stdout.readline().split("ws://")[1].split()[0].split(":")[-1])
        between = Relay(port) if relay else None
        names = [n for n, how in NETWORKS.items() if not (relay and how[2])]
        seen = {n: ([], 0) for n in names}
        for _ in range(number("--rounds", 4)):
            for name in names:
                delay, jitter, loss = NETWORKS[name]
                if relay:
                    between.delay, between.jitter = delay / 1e3, jitter / 1e3
                else:
                    shape(delay, jitter, loss)
                ages, missed = ask(between.port if relay else port, number("--requests", 50))
                seen[name] = (seen[name][0] + ages, seen[name][1] + missed)
    finally:
        server.kill()
        server.wait()
    print("%d requests each, %s, Linux %s, %s" % (number("--rounds", 4) * number("--requests", 50), "a relay" if relay else "netem",
                                                  platform.release(), time.strftime("%Y-%m-%d")))
    print("| network | p50 | p99 | max | older than 100 ms | `missed` of the server |\n|---|---|---|---|---|---|")
    for name, (ages, missed) in seen.items():
        ms = sorted(1e3 * a for a in ages)
        print("| %s | %.1f ms | %.1f ms | %.1f ms | %d | %d |" % (name, ms[len(ms) // 2], ms[len(ms) * 99 // 100], ms[-1],
                                                              sum(x > 1e3 * PERIOD_S for x in ms), missed))


def skip(why):
    print("SKIP: " + why)
    sys.exit(0)


if __name__ == "__main__":
    if "--relay" in sys.argv:
        measure(True)
    elif "--inside" in sys.argv:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        tried = netem("add", "dev", "lo", "root", "netem", "delay", "1ms")
        if tried.returncode:
            skip("no netem here: " + tried.stderr.strip())
        measure(False)
    else:
        apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
        if subprocess.run([*apart, "true"], capture_output=True).returncode:
            skip("no network namespace may be made here")
        sys.exit(subprocess.run([*apart, sys.executable, *sys.argv, "--inside"]).returncode)
