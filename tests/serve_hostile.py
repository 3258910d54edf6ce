"""serve_hostile.py - what strangers may send to `tectum serve`, TAP.  python3 tests/serve_hostile.py PROGRAM

Packets before the handshake, keys and web pages, sockets that only wait, descriptors that run out,
signals, and a connection thread that hangs. After each, a robot is still served.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_harness import OBSERVATION, PROGRAM, SLOW, check, main, test  # noqa: E402
from serve_client import Refused, Socket  # noqa: E402

PIPELINE = "pipelines/demo_metaworld.lua"
UPGRADE = ("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s\r\n")


class Server(serve_harness.Server):
    def __init__(self, *options, **how):
        super().__init__(PIPELINE, "--late-ok", *options, **how)

    def works(self, headers=""):
        s = self.connect(headers)
        check(s.infer(OBSERVATION)["actions"].shape == (16, 4))
        s.close()


def exchange(server, data, pieces=1, timeout=2.0):
    """Send bytes, in pieces; all that comes back until the server closes or `timeout`."""
    s = socket.create_connection(("127.0.0.1", server.port), timeout=timeout * SLOW)
    got = b""
    try:
        step = max(1, (len(data) + pieces - 1) // pieces)
        for i in range(0, len(data), step):
            s.sendall(data[i:i + step])
        while True:
            more = s.recv(65536)
            if not more:
                return got, True
            got += more
    except socket.timeout:
        return got, False
    except OSError:
        return got, True
    finally:
        s.close()


@test
def two_requests_in_one_packet_end_after_the_first():
    server = Server()
    get, post = "GET %s HTTP/1.1\r\n\r\n", "%s / HTTP/1.1\r\nContent-Length: 1\r\n\r\na"
    pairs = [get % "/" + post % "POST", post % "POST" + post % "POST", post % "PUT" + post % "PUT",
             "GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\na" * 2, get % "/healthz" + post % "POST",
             post % "POST" + get % "/"]
    for pair in pairs:
        got, closed = exchange(server, pair.encode())
        check(closed and got.count(b"HTTP/1.") == 1, pair, got, closed)
        server.works()
    began = server.cpu_s()
    time.sleep(0.5)
    check(server.cpu_s() - began < 0.3, "the connection thread spins")
    check(server.end()[0] == 0)


@test
def a_body_and_a_broken_second_request_end_the_connection():
    server = Server()
    start = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\naaaaaPOST / HTTP/V"
    for i in range(150):
        rest = random.Random(i).randbytes(60)
        got, closed = exchange(server, start + rest + b"\r\nContent-Length: 5\r\n\r\nbbbbb", timeout=1.0)
        check(closed and got.count(b"HTTP/1.") <= 1, rest, got)
    server.works()
    check(server.end()[0] == 0)


@test
def an_upgrade_behind_a_request_is_not_read():
    server = Server()
    s = socket.create_connection(("127.0.0.1", server.port), timeout=5 * SLOW)
    s.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
    check(b"200" in s.recv(4096))
    try:
        s.sendall(b"GET / HTTP/1.1\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n")
        check(s.recv(4096) == b"")
    except OSError:
        pass
    for upgrade in ("foo", "h2c", "websocket2", "x" * 3000):
        got, closed = exchange(server, (UPGRADE % "").replace("websocket\r", upgrade + "\r", 1).encode())
        check(closed and b" 101 " not in got, upgrade, got)
    server.works()
    check(server.end()[0] == 0)


@test
def requests_in_any_pieces_are_answered_once():
    server = Server()
    rng = random.Random(5)
    words = ["GET / HTTP/1.1\r\n", "POST /healthz HTTP/1.0\r\n", "HEAD / HTTP/1.1\r\n", "\r\n", "\r\n\r\n",
             "Content-Length: 3\r\n", "Content-Length: -1\r\n", "Transfer-Encoding: chunked\r\n",
             "Expect: 100-continue\r\n", "Upgrade: websocket\r\n", "Connection: keep-alive, Upgrade\r\n",
             "Sec-WebSocket-Key: x\r\n", "Sec-WebSocket-Version: 99\r\n", "abc", "\x00\xff", " ", ": ",
             "5\r\nhello\r\n0\r\n\r\n", "Sec-WebSocket-Extensions: permessage-deflate\r\n"]
    for i in range(300):
        text = "".join(rng.choice(words) for _ in range(rng.randrange(1, 9)))
        got, _ = exchange(server, text.encode("latin-1"), rng.randrange(1, 6), timeout=0.05)
        check(got.count(b"HTTP/1.") <= 1, text, got)
    server.works()
    check(server.end()[0] == 0)


@test
def a_web_page_is_refused():
    server = Server()
    for origin in ("https://evil.example", "null", "http://127.0.0.1:8000"):
        try:
            server.connect("Origin: %s\r\n" % origin)
            check(False, origin)
        except Refused as e:
            check(" 403 " in str(e), e)
    server.works()
    check(server.end()[0] == 0)


@test
def without_the_key_nobody_connects():
    key = "k" * 20 + "-secret"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "key")
        with open(path, "w") as f:
            f.write(key + "\n")
        os.chmod(path, 0o600)
        server = Server("--key", path)
        for shown in ("", "Authorization: Api-Key " + key[:-1], "Authorization: Api-Key " + key + "x",
                      "Authorization: " + key, "Authorization: Basic " + key, "Authorization: Api-Key ",
                      "Authorization: Api-Key " + "x" * 5000):
            try:
                server.connect(shown + "\r\n" if shown else "")
                check(False, shown)
            except Refused as e:
                check("HTTP/1.1 401 " in str(e) and "www-authenticate" in str(e).lower(), e)
            except (EOFError, OSError):
                check(len(shown) > 1000, shown)  # more than the library keeps of headers
        server.works("Authorization: Api-Key %s\r\n" % key)
        server.works("Authorization: bearer %s\r\n" % key)
        got, _ = exchange(server, b"GET /healthz HTTP/1.1\r\n\r\n")
        check(b" 200 " in got, got)
        check(server.end()[0] == 0)
        for mode, text, word in ((0o644, key, "chmod"), (0o600, "short", "characters"),
                                 (0o600, "has a space in it, so", "characters"), (0o600, "x" * 300, "characters")):
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, mode)
            p = subprocess.run([PROGRAM, "serve", PIPELINE, "--key", path], capture_output=True, text=True,
                               timeout=60)
            check(p.returncode == 3 and word in p.stderr and p.stderr.count("\n") == 1, p)
        os.mkfifo(path + ".fifo", 0o600)
        for bad in (path + ".none", folder, path + ".fifo"):
            p = subprocess.run([PROGRAM, "serve", PIPELINE, "--key", bad], capture_output=True, text=True,
                               timeout=60)
            check(p.returncode == 3 and bad in p.stderr, p)


@test
def it_listens_on_this_machine_alone():
    server = Server()
    check("ws://127.0.0.1:" in server.line, server.line)
    listening = [line.split()[1] for line in open("/proc/net/tcp") if line.split()[3] == "0A"]
    check("0100007F:%04X" % server.port in listening, listening)
    check("00000000:%04X" % server.port not in listening, listening)
    check("reaches" not in server.end()[2])
    check("--key" in Server("--host", "0.0.0.0").end()[2])


@test
def sockets_that_only_wait_keep_no_robot_out():
    server = Server("--max-connections", "2")
    slow = []
    for i in range(300):
        s = socket.create_connection(("127.0.0.1", server.port), timeout=5)
        s.sendall(b"GET / HTT")
        slow.append(s)
        if i % 50 == 49:
            server.works()
    for s in slow:
        s.close()
    check(server.end()[0] == 0)


@test
def an_idle_client_gives_its_place_to_a_robot():
    server = Server("--max-connections", "2")
    idle, busy = server.connect(), server.connect()
    began = time.monotonic()
    refused = 0
    while time.monotonic() - began < 12:
        check(busy.infer(OBSERVATION)["actions"].shape == (16, 4))
        if time.monotonic() - began < 8:
            try:
                server.connect()
                check(False, "a client of a few seconds lost its place")
            except Refused as e:
                refused += " 503 " in str(e)
        time.sleep(0.5)
    check(refused > 3, refused)
    server.works()
    opcode, data = idle.read()
    check(opcode == 8 and int.from_bytes(data[:2], "big") == 1013 and b"idle" in data, opcode, data)
    check(busy.infer(OBSERVATION)["actions"].shape == (16, 4))
    check(server.end()[0] == 0)


@test
def descriptors_are_enough_or_told():
    p = subprocess.run(["sh", "-c", "ulimit -n 300; exec %s serve %s --port 0 --max-connections 1024"
                        % (PROGRAM, PIPELINE)], capture_output=True, text=True, timeout=60)
    check(p.returncode == 3 and "ulimit -n" in p.stderr, p)
    server = Server("--max-connections", "2", limit=250)
    crowd = []
    for _ in range(240):
        crowd.append(socket.create_connection(("127.0.0.1", server.port), timeout=5))
    before = server.cpu_s()
    time.sleep(0.5)
    check(server.cpu_s() - before < 0.3, "the listener spins")
    server.works()
    for s in crowd:
        s.close()
    check(server.end()[0] == 0)


@test
def every_signal_to_end_is_a_good_bye():
    for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server = Server()
        s = server.connect()
        status, _, err = server.end(how)
        opcode, data = s.read()
        check(status == 0 and "requests" in err, how, status, err)
        check(opcode == 8 and int.from_bytes(data[:2], "big") == 1001, how, opcode, data)


@test
def two_signals_at_once_are_one():
    """As of GNU timeout, which signals the program, and then the process group that it is in."""
    server = Server()
    s = server.connect()
    server.p.send_signal(signal.SIGTERM)
    status, _, err = server.end(signal.SIGHUP)
    opcode, data = s.read()
    check(status == 0 and "second signal" not in err, status, err)
    check(opcode == 8 and int.from_bytes(data[:2], "big") == 1001, opcode, data)


# A library in front of the C library's recv(): bytes that begin with "STALL n" keep the thread that
# reads them busy for n seconds. Nothing of this is in the program.
STALL = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
ssize_t recv(int fd, void *data, size_t n, int flags)
{
    static ssize_t (*real)(int, void *, size_t, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "recv");
    ssize_t got = real(fd, data, n, flags);
    if (got > 7 && memcmp(data, "STALL ", 6) == 0)
        sleep((unsigned)atoi((char *)data + 6));
    return got;
}
"""


@test
def a_connection_thread_that_hangs_holds_no_reply_back():
    if "asan" in PROGRAM or "tsan" in PROGRAM:
        return "a sanitizer must be loaded first"
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "stall.c"), os.path.join(folder, "stall.so")
        with open(source, "w") as f:
            f.write(STALL)
        if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"]).returncode:
            return "no C compiler"
        server = Server("--set", "nodes.act.steps=400", env={"LD_PRELOAD": library})
        robot = server.connect()
        bad = socket.create_connection(("127.0.0.1", server.port))
        robot.send(OBSERVATION)
        bad.sendall(b"STALL 4 ")
        began = time.monotonic()
        reply = robot.reply()
        took = time.monotonic() - began
        check(reply["actions"].shape == (16, 4) and took < 3.5, took)
        check(robot.infer(OBSERVATION)["actions"].shape == (16, 4))  # it goes on afterwards
        bad = socket.create_connection(("127.0.0.1", server.port))
        bad.sendall(b"STALL 60 ")
        time.sleep(0.2)
        server.p.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        server.p.send_signal(signal.SIGTERM)
        _, err = server.p.communicate(timeout=20)
        check(server.p.returncode == 5 and "second signal" in err and "come round" in err, err)
        server = Server(env={"LD_PRELOAD": library})
        robot = server.connect()
        bad = socket.create_connection(("127.0.0.1", server.port))
        bad.sendall(b"STALL 60 ")
        _, err = server.p.communicate(timeout=40)
        check(server.p.returncode == 5 and "connection thread is lost" in err, err)
        try:
            robot.read()
            check(False, "the robot's connection is still there")
        except (EOFError, OSError):
            pass


if __name__ == "__main__":
    sys.exit(main())
