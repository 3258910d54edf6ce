"""network.py - a robot and a server over networks that delay, lose and mix up packets: how old actions are, what is missed.

usage: python3 tools/measure/network.py PROGRAM [--queue] [--rounds N] [--requests N] [--seconds S] [--keep-window | --netem]
A robot asks ten times a second and waits for each reply, N times for each network. --queue: it has tectum.AsyncClient
instead (the package tectum is in PYTHONPATH), hands over twenty observations a second and takes fifty actions, for S seconds.
Networks are tried in turns, each with a connection of its own; two_machines.py makes them, or with --netem the kernel's
`tc netem`. --keep-window: TCP does not begin slowly again after each pause. Both are in namespaces of this script's own. Where these are not permitted, or the kernel has no netem, the
script says SKIP and ends with 0.
"""

import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests"))
import two_machines  # noqa: E402
from serve_client import Array, Socket  # noqa: E402

PROGRAM = sys.argv[1]
PERIOD_S = 0.1  # of the demo
# Delay each way and how much it varies, in ms; share of packets that is lost, in percent; seconds without any.
NETWORKS = {"a cable": (0, 0, 0, 0), "5 ms each way": (5, 0, 0, 0), "5 ms, varying by 4": (5, 4, 0, 0), "20 ms each way": (20, 0, 0, 0),
            "20 ms, varying by 15": (20, 15, 0, 0), "60 ms each way": (60, 0, 0, 0), "5 ms, 1 % lost": (5, 0, 1, 0),
            "20 ms, 3 % lost": (20, 0, 3, 0), "5 ms, gone for 3 s": (5, 0, 0, 3)}


def number(option, otherwise):
    return float(sys.argv[sys.argv.index(option) + 1]) if option in sys.argv else otherwise


class Netem:
    """The loopback interface of this namespace: what goes either way passes it once."""

    address = "127.0.0.1"

    @staticmethod
    def tc(*words):
        return subprocess.run(["tc", "qdisc", *words], capture_output=True, text=True)

    def shape(self, delay_s=0.0, jitter_s=0.0, loss=0.0, gone=False):
        done = self.tc("replace", "dev", "lo", "root", "netem", "limit", "100000", "delay", "%dus" % (1e6 * delay_s),
                       "%dus" % (1e6 * jitter_s), "loss", "%g%%" % (100 if gone else 100 * loss))
        if done.returncode:
            sys.exit("network: " + done.stderr.strip())

    def there_is(self, start):
        return start()

    def close(self):
        pass


class Machines(two_machines.Link):
    address = two_machines.SERVER


@dataclass
class Seen:
    """Of one network."""

    ages: list = field(default_factory=list)
    delays: list = field(default_factory=list)
    turns: int = 0
    without: int = 0  # turns that had no action of a chunk
    late: int = 0  # chunks
    missed: int = 0
    again: int = 0  # packets that the robot has sent a second time


PICTURE = bytes(64 * 64 * 3)


def ask(seen, net, port, shape):
    """Observations, each sent when the reply before it is there; `ages` end with the reply."""
    picture = Array("|u1", [64, 64, 3], PICTURE)
    asked = {"observation/image": picture, "observation/wrist_image": picture, "prompt": "press the button",
             "observation/state": Array.floats([0.0, 0.6, 0.2, 1.0]), "tectum": {"reset": False}}
    net.shape(*shape[:3])
    s = Socket(port, timeout=60, to=net.address)
    s.reply()
    tick = time.monotonic()
    for _ in range(int(number("--requests", 50))):
        tick = max(tick + PERIOD_S, time.monotonic())
        time.sleep(max(0.0, tick - time.monotonic()))
        begin = time.monotonic()
        seen.missed += s.infer(asked)["tectum"]["missed"]
        seen.ages.append(time.monotonic() - begin)
    s.close()


def follow(seen, net, port, shape):
    """A control loop of 50 Hz with tectum.AsyncClient; `ages` are those of the chunks' actions that it takes."""
    import numpy as np
    import tectum
    picture = np.frombuffer(PICTURE, np.uint8).reshape(64, 64, 3)
    observation = {"observation/image": picture, "observation/wrist_image": picture, "prompt": "press the button",
                   "observation/state": np.array([0, 0.6, 0.2, 1], np.float32)}
    seconds, (delay, jitter, loss, gone_s) = number("--seconds", 20), shape
    net.shape(delay, jitter, loss)
    with tectum.AsyncClient("ws://%s:%d" % (net.address, port), rate_hz=1 / PERIOD_S, interpolate=True) as client:
        client.observe(observation)
        client.ready(timeout=60)
        begin = tick = time.monotonic()
        turn = 0
        while tick < begin + seconds + gone_s or (gone_s and action.source != "fresh"):
            if tick > begin + seconds + gone_s + 60:
                sys.exit("network: a minute after the network was there again no action had come")
            time.sleep(max(0.0, tick - time.monotonic()))
            if gone_s:
                net.shape(delay, jitter, loss, seconds / 3 < time.monotonic() - begin < seconds / 3 + gone_s)
            if turn % 5 in (0, 2):
                client.observe(observation)
            action = client.next()
            seen.turns += 1
            if action.source == "fresh":
                seen.ages.append(action.age_ns / 1e9)
            else:
                seen.without += 1
            turn, tick = turn + 1, max(tick + 0.02, time.monotonic())
        stats = client.stats
    seen.delays.append(stats.delay_p99 / 1e9)
    seen.late += stats.late
    seen.missed += stats.substitutes


def measure(net, drive, names):
    command = [PROGRAM, "serve", "pipelines/demo_metaworld.lua", "--host", net.address, "--port", "0", "--threads", "1"]
    server = net.there_is(lambda: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    seen = {name: Seen() for name in names}
    try:
        port = int(server.stdout.readline().split("ws://")[1].split()[0].split(":")[-1])
        for _ in range(int(number("--rounds", 4))):
            for name in names:
                delay, jitter, loss, gone_s = NETWORKS[name]
                before = two_machines.sent_again()
                drive(seen[name], net, port, (delay / 1e3, jitter / 1e3, loss / 1e2, gone_s))
                seen[name].again += two_machines.sent_again() - before
    finally:
        server.kill()
        server.wait()
        net.close()
    return seen


def quantiles(seconds):
    ms = sorted(1e3 * x for x in seconds)
    return "%.1f ms | %.1f ms | %.1f ms" % (ms[len(ms) // 2], ms[len(ms) * 99 // 100], ms[-1])


def main(net, by):
    queue = "--queue" in sys.argv
    seen = measure(net, follow if queue else ask, [n for n, how in NETWORKS.items() if queue or not how[3]])
    each = "%g s" % number("--seconds", 20) if queue else "%d requests" % number("--requests", 50)
    print("%d times %s each, %s, Linux %s, %s" % (number("--rounds", 4), each, by, platform.release(), time.strftime("%Y-%m-%d")))
    if queue:
        print("| network | reply p99 | age p50 | p99 | max | turns | without an action | late chunks | `substitutes` | sent again |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for name, s in seen.items():
            print("| %s | %.1f ms | %s | %d | %d | %d | %d | %d |" % (name, 1e3 * max(s.delays), quantiles(s.ages or [0]), s.turns,
                                                                 s.without, s.late, s.missed, s.again))
        return
    print("| network | p50 | p99 | max | older than 100 ms | `missed` of the server | sent again |\n|---|---|---|---|---|---|---|")
    for name, s in seen.items():
        print("| %s | %s | %d | %d | %d |" % (name, quantiles(s.ages), sum(x > PERIOD_S for x in s.ages), s.missed, s.again))


def skip(why):
    print("SKIP: " + why)


if __name__ == "__main__":
    two_machines.apart(skip, tun="--netem" not in sys.argv)
    if "--netem" in sys.argv:
        two_machines.up("lo")
        tried = Netem.tc("add", "dev", "lo", "root", "netem", "delay", "1ms")
        if tried.returncode:
            skip("no netem here: " + tried.stderr.strip())
            sys.exit(0)
        main(Netem(), "netem")
    else:
        net = Machines()
        if "--keep-window" in sys.argv:
            net.tcp("slow_start_after_idle", "0")
        main(net, "two namespaces, TCP " + net.congestion)
