"""serve_fleet.py - robots before several servers behind HAProxy, TAP.  python3 tests/serve_fleet.py PROGRAM [--times]

integrations/haproxy/haproxy.cfg with other addresses: a robot comes back to its server, a server that is drained loses
no request, the robots of one that is killed come back at another, and all of them get the bytes that one server gives.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
import serve_tls  # noqa: E402
from serve_client import Array, Refused, Socket  # noqa: E402
from serve_harness import BOX, OBSERVATION, SLOW, check, main, servers  # noqa: E402

serve_harness.tests.clear()  # those of serve_tls are its own
test = serve_harness.test
CONFIG = "integrations/haproxy/haproxy.cfg"
NAMES = ("one", "two", "three")
ROBOTS, STEPS, PACE_S = 20, 5, 0.1
BACK_S = 10 * SLOW  # HAProxy tries three times, and looks at a server twice a second


def asked(i):
    return {**OBSERVATION, "observation/state": Array.floats([0.01 * i, 0.6, 0.2, 1.0]),
            "tectum": {"seed": i, "session_id": "arm-%d" % i}}


class Served(serve_harness.Server):
    def __init__(self, *options, tls=None):
        self.tls = tls
        super().__init__("pipelines/demo_metaworld.lua", "--late-ok", "--drain-s", "600", *options)


def expected():
    """What one server gives each robot."""
    s = Served().connect()
    return [s.infer(asked(i))["actions"].data for i in range(ROBOTS)]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Fleet:
    """Servers by name, HAProxy before them, robots that ask. patient: a server whose answers about its health are slow,
    as on a machine that is busy, is not given up."""

    def __init__(self, names=NAMES, robots=ROBOTS, tls=False, patient=False):
        self.patient = patient
        given = (*serve_tls.GIVEN, "--key", serve_harness.key_file(serve_tls.KEY)) if tls else ()
        self.tls = serve_tls.TRUSTS if tls else None
        self.headers = "Authorization: Api-Key %s\r\n" % serve_tls.KEY if tls else ""
        self.servers = {name: Served(*given, tls=self.tls) for name in names}
        self.port = free_port()
        self.start_proxy()
        self.stopping = False
        self.robots = [Robot(self, i) for i in range(robots)]
        for r in self.robots:
            r.start()
        self.wait(lambda: all(len(r.times) >= 2 for r in self.robots), "all robots are served")

    def config(self):
        text = open(CONFIG).read()
        secure = " ssl verify required verifyhost localhost ca-file %s" % serve_tls.box("root.pem") if self.tls else ""
        lines = ["    server %s 127.0.0.1:%d maxconn 16%s" % (n, s.port, secure) for n, s in self.servers.items()]
        text, n = re.subn(r"(?m)^    server .*\n", "", text)
        check(n == 3, "the example has three servers")
        bind = "bind 127.0.0.1:%d" % self.port
        if self.tls:
            both = serve_tls.write("both.pem", serve_tls.content("own.pem") + serve_tls.content("own.key"))
            bind += " ssl crt " + both
        for line, new in (("bind :8000", bind), ("maxconn 4000", "maxconn 200"),
                          ("fall 2 ", "fall 1000 " if self.patient else "fall 2 "), ("/run/haproxy/tectum.sock", os.path.join(BOX, "haproxy.sock"))):
            check(line in text, line)
            text = text.replace(line, new)
        path = os.path.join(BOX, "haproxy.cfg")
        with open(path, "w") as f:
            f.write(text + "\n".join(lines) + "\n")
        return path

    def start_proxy(self):
        path = self.config()
        good = subprocess.run(["haproxy", "-c", "-f", path], capture_output=True, text=True)
        check(good.returncode == 0 and "WARNING" not in good.stderr, good.stderr)
        self.proxy = subprocess.Popen(["haproxy", "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        servers.append(self.proxy)
        for _ in range(int(200 * SLOW)):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        check(False, "HAProxy does not listen")

    def wait(self, condition, what, seconds=60):
        until = time.monotonic() + seconds * SLOW
        while not condition():
            check(time.monotonic() < until, what, [(r.at, len(r.times), r.failures) for r in self.robots])
            time.sleep(0.02)

    def at(self, name):
        return [r for r in self.robots if r.at == name]

    def go_on(self, episodes=2):
        """Each robot ends some more episodes."""
        before = [r.episodes for r in self.robots]
        self.wait(lambda: all(r.episodes >= n + episodes for r, n in zip(self.robots, before)), "episodes go on")

    def end(self, bytes_of):
        """Every reply was right; the failures that robots saw."""
        self.stopping = True
        for r in self.robots:
            r.join(60 * SLOW)
            check(not r.is_alive() and not r.wrong, r.at, r.wrong)
            check(r.chunks == {bytes_of[r.i]}, "robot %d got other bytes" % r.i)
        return {r.i: r.failures for r in self.robots if r.failures}


class Robot(threading.Thread):
    """Episodes of STEPS requests, each with a connection; a request that fails is asked again."""

    def __init__(self, fleet, i):
        super().__init__(daemon=True)
        self.fleet, self.i, self.at, self.episodes = fleet, i, None, 0
        self.visits, self.times, self.failures, self.chunks, self.wrong = [], [], [], set(), None

    def connect(self):
        f = self.fleet
        s = Socket(f.port, path="/arm-%d" % self.i, headers=f.headers, timeout=20 * SLOW, tls=f.tls)
        at = re.search(rb"(?i)\r\ntectum-server: (\w+)", s.head)
        check(list(s.reply()) == ["tectum"] and at, s.head)
        self.at = at.group(1).decode()
        self.visits.append(self.at)
        return s

    def run(self):
        s, step = None, 0
        try:
            while not self.fleet.stopping:
                try:
                    s = s or self.connect()
                    self.chunks.add(s.infer(asked(self.i))["actions"].data)
                    self.times.append(time.monotonic())
                    step += 1
                except (OSError, EOFError, Refused, AssertionError) as e:
                    self.failures.append((time.monotonic(), self.at, repr(e)))
                    s, self.at = None, None
                    time.sleep(0.05)
                    continue
                time.sleep(PACE_S)
                if step % STEPS == 0:
                    s.close()
                    s = None
                    self.episodes += 1
        except Exception as e:  # noqa: BLE001
            self.wrong = repr(e)


@test
def robots_are_spread_and_come_back_to_their_server():
    fleet = Fleet(patient=True)
    fleet.go_on(3)
    there = [len(fleet.at(name)) for name in NAMES]
    check(sum(there) == ROBOTS and min(there) >= 3, there)
    check(all(len(set(r.visits)) == 1 and len(r.visits) >= 3 for r in fleet.robots), [(r.i, r.visits, r.failures) for r in fleet.robots if len(set(r.visits)) != 1 or len(r.visits) < 3])
    check(fleet.end(expected()) == {})


@test
def a_server_that_is_drained_loses_no_request():
    fleet = Fleet(patient=True)
    leaving, robots = fleet.servers["two"], fleet.at("two")
    check(len(robots) >= 3, len(robots))
    leaving.p.send_signal(signal.SIGTERM)
    fleet.wait(lambda: leaving.p.poll() is not None, "the drained server ends")
    out, err = leaving.p.communicate()
    check(leaving.p.returncode == 0 and " 0 errors" in err, leaving.p.returncode, err)
    fleet.go_on()
    check(not fleet.at("two") and all(len(set(r.visits)) == 2 for r in robots), [r.visits for r in robots])
    check(all(len(set(r.visits)) == 1 for r in fleet.robots if r not in robots), "others stay where they are")
    check(fleet.end(expected()) == {})


@test
def robots_of_a_server_that_is_killed_come_back_at_another():
    fleet = Fleet()
    robots = fleet.at("three")
    check(len(robots) >= 3, len(robots))
    seen = [len(r.times) for r in robots]
    killed_at = time.monotonic()
    fleet.servers["three"].p.kill()
    fleet.wait(lambda: all(r.at not in (None, "three") and r.times[-1] > killed_at + PACE_S for r in robots), "they are back")
    fleet.go_on()
    back = [min(t for t in r.times if t > (r.failures or [[killed_at]])[-1][0]) - killed_at for r in robots]
    check(max(back) < BACK_S, back)
    print("# %d robots were back after %.0f to %.0f ms" % (len(robots), 1e3 * min(back), 1e3 * max(back)))
    check(all(len(r.times) > n for r, n in zip(robots, seen)))
    failures = fleet.end(expected())
    check(set(failures) <= {r.i for r in robots}, "others are not disturbed", failures)
    check(all(len(f) <= 1 for f in failures.values()), "one request each is asked again", failures)


@test
def the_same_with_tls_on_both_sides():
    fleet = Fleet(names=NAMES[:2], robots=6, tls=True)
    fleet.go_on(1)
    leaving, robots = fleet.servers["one"], fleet.at("one")
    check(robots and fleet.at("two"), [r.at for r in fleet.robots])
    leaving.p.send_signal(signal.SIGTERM)
    fleet.wait(lambda: leaving.p.poll() is not None, "the drained server ends")
    check(leaving.p.returncode == 0)
    fleet.go_on(1)
    check(not fleet.at("one") and fleet.end(expected()) == {})


@test
def robots_without_a_name_are_spread():
    fleet = Fleet(robots=0)
    open_ones = [Socket(fleet.port, timeout=20 * SLOW) for _ in range(9)]
    there = [s.head.lower().split(b"tectum-server: ")[1].split()[0] for s in open_ones]
    check(sorted(there.count(n.encode()) for n in NAMES) == [3, 3, 3], there)


@test
def tectums_own_client_says_its_name():
    seen = os.path.join(BOX, "seen.mcap")
    subprocess.run([serve_harness.PROGRAM, "run", "pipelines/demo_metaworld.lua", "--random-inputs", "1", "--frames", "1",
                    "--record", seen], check=True, capture_output=True)
    probe = [serve_harness.PROGRAM, "probe", "--recording", seen]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4)
        listener.settimeout(20 * SLOW)
        url = "ws://127.0.0.1:%d" % listener.getsockname()[1]
        for path in ("/arm-7", "/cell/3?x=1", ""):
            p = subprocess.Popen([*probe, url + path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            servers.append(p)
            s, _ = listener.accept()
            line = s.recv(4096).split(b"\r\n")[0].decode()
            s.close()
            check(line == "GET %s HTTP/1.1" % (path or "/"), line)
            check(p.wait(20 * SLOW) == 3 and url in p.stderr.read())
        for path in ("/a b", "/a\r\nX: y", "/\u00e9"):
            p = subprocess.run([*probe, url + path], capture_output=True, timeout=20 * SLOW)
            check(p.returncode == 2 and b"path" in p.stderr, path, p)


def cpu_ms(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return 1e3 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def print_times():
    """A request straight to a server, through HAProxy, and through it with TLS on both sides, in turns; and what
    HAProxy and handshakes take of the processor, which others on the machine do not change much."""
    plain, secure = Fleet(NAMES[:1], robots=0), Fleet(NAMES[:1], robots=0, tls=True)
    straight = plain.servers["one"].connect()
    ways = {"straight": straight}
    for name, f in (("HAProxy", plain), ("HAProxy, TLS", secure)):
        ways[name] = Socket(f.port, path="/arm", headers=f.headers, timeout=20 * SLOW, tls=f.tls)
        ways[name].reply()
    before = [cpu_ms(f.proxy.pid) for f in (plain, secure)]
    serve_harness.times({name: (lambda s=s: s.infer(asked(0))) for name, s in ways.items()}, rounds=500)
    for name, f, ms in zip(("HAProxy", "HAProxy, TLS"), (plain, secure), before):
        print("%-24s %.3f ms of a core for a request" % (name, (cpu_ms(f.proxy.pid) - ms) / 500))
    server, n = secure.servers["one"], 500
    before = cpu_ms(server.p.pid)
    for _ in range(n):
        serve_tls.TRUSTS.wrap_socket(socket.create_connection(("127.0.0.1", server.port)),
                                     server_hostname="127.0.0.1").close()
    print("%-24s %.3f ms of a core for a handshake (P-256)" % ("tectum", (cpu_ms(server.p.pid) - before) / n))


if __name__ == "__main__":
    sys.exit(print_times() if "--times" in sys.argv else main())
