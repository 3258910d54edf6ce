"""serve_service.py - a server under a service manager, TAP.  python3 tests/serve_service.py PROGRAM

It takes the socket that it is handed, says when it is ready and when it ends, and lets the robots that are there
finish before it ends, while a load balancer is told to send it no others.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_client import Refused, Socket  # noqa: E402
from serve_harness import BOX, OBSERVATION, PROGRAM, SLOW, check, main, test  # noqa: E402

DEMO = "pipelines/demo_metaworld.lua"


class Server(serve_harness.Server):
    def __init__(self, *options, **how):
        super().__init__(DEMO, "--late-ok", *options, **how)


def ready(server):
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d/readyz" % server.port, timeout=20 * SLOW) as r:
            return r.status
    except urllib.error.HTTPError as e:
        return e.code


def handed(given, *options, n=1):
    """The program, started with `given` as descriptor 3, as a service manager does it."""
    def put():
        os.dup2(given.fileno(), 3)
        os.set_inheritable(3, True)  # it may have been there already

    words = 'LISTEN_PID=$$ LISTEN_FDS=%d exec "$@"' % n
    return subprocess.Popen(["sh", "-c", words, "sh", PROGRAM, "serve", DEMO, "--threads", "1", "--late-ok", *options],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, close_fds=False,
                            preexec_fn=put)


@test
def a_socket_that_is_handed_over_is_served():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        port = listener.getsockname()[1]
        early = socket.create_connection(("127.0.0.1", port))  # before there is a server: it waits
        early.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        p = handed(listener)
        serve_harness.servers.append(p)
        line = p.stdout.readline()
        check("ws://127.0.0.1:%d" % port in line, line, p.poll() is not None and p.stderr.read())
        early.settimeout(20 * SLOW)
        check(early.recv(4096).startswith(b"HTTP/1.1 200"))
        s = Socket(port, timeout=20 * SLOW)
        check("tectum" in s.reply() and s.infer(OBSERVATION)["actions"].shape == (16, 4))
        p.send_signal(signal.SIGTERM)
        check(p.wait(30 * SLOW) == 0)


@test
def what_is_no_socket_is_refused():
    with socket.socket() as listener, socket.socket() as idle, socket.socket(type=socket.SOCK_DGRAM) as datagrams, \
            open(os.devnull) as file:
        for s in (listener, idle, datagrams):
            s.bind(("127.0.0.1", 0))
        listener.listen(8)
        for given, n, options, words in ((idle, 1, [], "no TCP socket that listens"), (datagrams, 1, [], "no TCP socket that listens"),
                                         (file, 1, [], "no TCP socket that listens"), (listener, 2, [], "2 sockets: a server takes one"),
                                         (listener, 1, ["--port", "0"], "leave out --port and --host")):
            p = handed(given, *options, n=n)
            _, err = p.communicate(timeout=30 * SLOW)
            check(p.returncode == 2 and words in err, given, p.returncode, err)


@test
def the_manager_is_told_the_state():
    path = os.path.join(BOX, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(20 * SLOW)
        server = Server("--drain-s", "60", env={"NOTIFY_SOCKET": path})
        check(s.recv(100) == b"READY=1")
        server.p.send_signal(signal.SIGTERM)
        check(s.recv(100) == b"STOPPING=1")
        check(server.p.wait(30 * SLOW) == 0)  # nobody is there: at once
    for nowhere in ("nowhere", "/", path, path + "x" * 200):
        check(Server(env={"NOTIFY_SOCKET": nowhere}).end()[0] == 0, nowhere)


@test
def robots_finish_before_it_ends():
    server = Server("--drain-s", "600")
    s, other = server.connect(), server.connect()
    before = s.infer({**OBSERVATION, "tectum": {"seed": 7}})["actions"].data
    check(ready(server) == 200)
    server.p.send_signal(signal.SIGTERM)
    while ready(server) == 200:  # until the signal has come
        pass
    check(ready(server) == 503)
    try:
        server.connect()
        check(False, "a robot was taken")
    except Refused as e:
        check("503" in str(e), e)
    other.close()
    check(s.infer({**OBSERVATION, "tectum": {"seed": 7}})["actions"].data == before)
    check(server.p.poll() is None)
    s.close()
    check(server.p.wait(30 * SLOW) == 0)


@test
def who_stays_is_told_in_the_end():
    server = Server("--drain-s", "1")
    s = server.connect()
    server.p.send_signal(signal.SIGTERM)
    check(select.select([s.s], [], [], 30 * SLOW)[0])
    check(server.p.wait(30 * SLOW) == 0)


@test
def a_second_signal_ends_it_at_once():
    server = Server("--drain-s", "600")
    robot = server.connect()  # is waited for
    server.p.send_signal(signal.SIGTERM)
    while ready(server) == 200:
        pass
    time.sleep(0.2)  # two within a tenth of a second are one, which GNU timeout sends twice
    server.p.send_signal(signal.SIGTERM)
    check(server.p.wait(30 * SLOW) == 5)
    robot.close()


@test
def units_are_good():
    if not shutil.which("systemd-analyze"):
        return "no systemd-analyze"
    folder = os.path.join(BOX, "units")
    shutil.copytree("tools/systemd", folder)
    path = os.path.join(folder, "tectum@.service")
    text = open(path).read()
    check("ExecStart=/usr/bin/tectum serve /etc/tectum/%i.lua" in text)
    with open(path, "w") as f:  # an executable that is there
        f.write(text.replace("/usr/bin/tectum", os.path.abspath(PROGRAM)))
    for unit in ("tectum@arm.service", "tectum@arm.socket"):
        said = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.join(folder, unit)], capture_output=True, text=True)
        check(said.returncode == 0 and "tectum@" not in said.stderr, unit, said.stderr)


if __name__ == "__main__":
    sys.exit(main())
