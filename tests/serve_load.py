"""serve_load.py - a server under a long load keeps its memory, descriptors and threads, TAP.
python3 tests/serve_load.py PROGRAM [--long] [--requests N]

Requests over openpi's protocol and POST /act, on connections that stay and on connections that each bring one
request. What the process has is noted behind a first quarter, when its histories (the flight recorder's among them)
are full, and at the end. --long: 10^6 requests, 10^4 connections; --requests N: as many requests, N / 100 connections.
"""

import http.client
import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_client import Socket, pack  # noqa: E402
from serve_harness import OBSERVATION, SIDE, SLOW, check, main, test  # noqa: E402

MANY = "pipelines/graphs/g24_many_robots.lua"
CLIENTS = 4  # as many as the pipeline has sessions
FIRST = 2600  # requests in which a flight recorder of 65536 events has been full once
if "--requests" in sys.argv:
    REQUESTS = int(sys.argv[sys.argv.index("--requests") + 1])
else:
    REQUESTS = 1000000 if "--long" in sys.argv else 1500
CONNECTIONS = max(REQUESTS // 100, 300)
MOST_KIB = 1024  # a byte a request of the long run; the smallest block that can be lost has 32


class Server(serve_harness.Server):
    def __init__(self):
        super().__init__(MANY, "--late-ok", "--act-port", "0", "--max-connections", "32",
                         "--set", "nodes.act.steps=1", "--set", "nodes.talk.max_tokens=1",
                         env={"MALLOC_ARENA_MAX": "2"})  # else each core's first threads take memory
        self.threads = self.has()[2]
        self.act_port = int(self.line.split(" and ")[1].split()[0].split(":")[2].split("/")[0])

    def has(self):
        """Resident KiB, descriptors, threads."""
        status = dict(x.split(":", 1) for x in open("/proc/%d/status" % self.p.pid).read().splitlines() if ":" in x)
        return (int(status["VmRSS"].split()[0]), len(os.listdir("/proc/%d/fd" % self.p.pid)), int(status["Threads"]))

    def rests(self):
        """What it has when its clients have left: a connection's thread may take a while to end."""
        until = time.monotonic() + 30 * SLOW
        while time.monotonic() < until:
            if self.has()[2] == self.threads:
                break
            time.sleep(0.05)
        return self.has()


def in_parts(n, ask):
    """Let so many clients at once do n of `ask(client, how_many)`; the first failure is raised."""
    failed = []

    def run(i):
        try:
            ask(i, n // CLIENTS + (i < n % CLIENTS))
        except Exception as e:  # noqa: BLE001
            failed.append(e)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


FRAME = Socket.bytes_of(2, pack(OBSERVATION))


def ask_openpi(s):
    s.s.sendall(FRAME)
    opcode, data = s.message()
    check(opcode == 2 and b"actions" in data[:64], opcode, data[:200])


def openpi_stays(server):
    def ask(_, n):
        s = server.connect()
        for _ in range(n):
            ask_openpi(s)
        s.close()
    return ask


def openpi_comes(server):
    def ask(_, n):
        for _ in range(n):
            s = server.connect()
            ask_openpi(s)
            s.close()
    return ask


def asked(i):
    picture = {"__numpy__": "AAAA" * (SIDE * SIDE), "dtype": "|u1", "shape": [SIDE, SIDE, 3]}
    return json.dumps({"image": picture, "wrist_image": picture, "state": [0.0, 0.6, 0.2, 1.0],
                       "instruction": "press the button", "session_id": "robot%d" % i}).encode()


def act(connection, body):
    connection.request("POST", "/act", body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    check(reply.status == 200, reply.status, text[:200])


def act_stays(server):
    def ask(i, n):
        body = asked(i)
        c = http.client.HTTPConnection("127.0.0.1", server.act_port, timeout=60 * SLOW)
        for _ in range(n):
            act(c, body)
        c.close()
    return ask


def act_comes(server):
    def ask(i, n):
        body = asked(i)
        for _ in range(n):
            c = http.client.HTTPConnection("127.0.0.1", server.act_port, timeout=60 * SLOW)
            act(c, body)
            c.close()
    return ask


def who_never_asks(server):
    """Connections that leave amid a handshake, a message, a request."""
    begun = (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /act HTTP/1.1\r\nContent-Length: 900\r\n\r\n{")

    def ask(i, n):
        for k in range(n):
            with socket.create_connection(("127.0.0.1", (server.port, server.act_port)[k % 2]), timeout=30 * SLOW) as s:
                s.sendall(begun[k // 2 % len(begun)])
            s = server.connect()
            s.s.sendall(FRAME[:200])
            s.close()
    return ask


def flat(server, n_requests, ways):
    for way in ways:
        in_parts(max(FIRST // len(ways), 1), way(server))
    has = []
    for _ in range(4):
        for way in ways:
            in_parts(max(n_requests // len(ways) // 4, 1), way(server))
        has.append(server.rests())
    print("# KiB, descriptors, threads behind each quarter: %s" % has, flush=True)
    before, after = has[0], has[-1]
    check(before[2] == after[2] == server.threads, has)
    check(after[1] <= before[1] + 2, has)  # a socket whose client has left may be there for a moment
    check(after[0] - before[0] <= MOST_KIB * SLOW, has)
    check(server.p.poll() is None)


@test
def requests_leave_nothing_behind():
    flat(Server(), REQUESTS, [openpi_stays, act_stays])


@test
def connections_leave_nothing_behind():
    flat(Server(), CONNECTIONS, [openpi_comes, act_comes, who_never_asks])


if __name__ == "__main__":
    sys.exit(main())
