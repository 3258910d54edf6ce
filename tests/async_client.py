"""async_client.py - a robot's asynchronous client and `tectum serve`: bytes, what goes along, what is lost.

usage: python3 tests/async_client.py PROGRAM    with the package tectum in PYTHONPATH
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np

import tectum
from serve_client import Array, unpack
from serve_harness import BOX, PROGRAM, SLOW, Server, check, key_file, main, servers, test, write_safetensors

DEMO, PREFIX = "pipelines/demo_metaworld.lua", "tests/pipelines/prefix.lua"
PERIOD = 50_000_000  # nanoseconds, of 20 rows a second
rng = np.random.default_rng(5)
PICTURES = [rng.integers(0, 256, (64, 64, 3), np.uint8) for _ in range(2)]


def seen(pipeline=DEMO, state=(0.0, 0.6, 0.2, 1.0)):
    before = "" if pipeline == PREFIX else "observation/"
    return {before + "image": PICTURES[0], before + "wrist_image": PICTURES[1],
            before + "state": np.array(state, np.float32), "prompt": "press the button"}


def client(port, **options):
    return tectum.AsyncClient(f"ws://127.0.0.1:{port}", **{"rate_hz": 20, "hold_ms": -1} | options)


def until(what, turn=lambda: None):
    """Turns until something is so, and not for ever."""
    for _ in range(int(6000 * SLOW)):
        if what():
            return
        turn()
        time.sleep(0.005)
    check(False, "it did not come about")


def rows(of, n=16):
    """Every row of the newest chunk, which began with its observation."""
    first = of.next()
    at = first.captured_ns
    return np.array([of.next(at + i * PERIOD + 1000).values for i in range(n)])


def run(pipeline, observation, *options):
    """The actions of `tectum run` for an observation."""
    path = os.path.join(BOX, "seen.safetensors")
    arrays = {k: v for k, v in observation.items() if isinstance(v, np.ndarray)}
    write_safetensors(path, arrays)
    said = [x for name in arrays for x in ("-i", f"{name}=@{path}#{name}")]
    said += [x for name, text in observation.items() if isinstance(text, str) for x in ("-i", f"{name}={text}")]
    out = subprocess.run([PROGRAM, "run", pipeline, "--threads", "1", "--format", "json", "--seed", "7", *said, *options],
                         stdout=subprocess.PIPE, text=True, check=True, timeout=120 * SLOW).stdout
    return np.array(json.loads(out.splitlines()[0])["actions"]["act"])


class Relay:
    """Passes bytes between a client and a server, and keeps the messages both ways."""

    def __init__(self, port):
        self.port, self.sent, self.answers, self.bytes = port, [], [], {"sent": b"", "answers": b""}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own = self.listener.getsockname()[1]
        threading.Thread(target=self._meet, daemon=True).start()

    def _meet(self):
        while True:
            a, _ = self.listener.accept()
            b = socket.create_connection(("127.0.0.1", self.port))
            for x in (a, b):
                x.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.bytes = {"sent": b"", "answers": b""}
            for one, other, where in ((a, b, "sent"), (b, a, "answers")):
                threading.Thread(target=self._pass, args=(one, other, where), daemon=True).start()

    def _pass(self, one, other, where):
        head = True
        while data := self._more(one):
            got = self.bytes[where] + data
            if head and b"\r\n\r\n" in got:
                head, got = False, got.partition(b"\r\n\r\n")[2]
            while not head and (frame := self._frame(got)):
                message, got = frame
                getattr(self, where).append(unpack(message))
            self.bytes[where] = got
            other.sendall(data)
        other.close()

    @staticmethod
    def _more(one):
        try:
            return one.recv(1 << 16)
        except OSError:  # the other side has ended
            return b""

    @staticmethod
    def _frame(data):
        if len(data) < 2:
            return None
        n, at = data[1] & 127, 2
        if n > 125:
            size = 2 if n == 126 else 8
            n, at = int.from_bytes(data[2:2 + size], "big"), 2 + size
        at += 4 * (data[1] >> 7)  # the client's mask is of zeros
        return (data[at:at + n], data[at + n:]) if len(data) >= at + n else None


def numbers(array):
    """Of the server, whose keys are bytes, and of the client, whose keys are texts."""
    if isinstance(array, dict):
        array = Array(array["dtype"], array["shape"], array["data"])
    check(array.dtype == "<f8", array.dtype)
    return np.frombuffer(array.data).reshape(array.shape)


@test
def rows_have_the_bytes_of_run():
    with client(Server(DEMO, "--late-ok").port, seed=7) as robot:
        robot.observe(seen())
        robot.ready(60 * SLOW)
        check(rows(robot).tobytes() == run(DEMO, seen()).tobytes())
        action = robot.next(robot.next().captured_ns + 5 * PERIOD + 1000)
        check((action.source, action.row, action.left, action.observation) == ("fresh", 5, 10, 0), action)
        check(action.age_ns == 5 * PERIOD + 1000, action)


def guided(pipeline, left, observation, kind, extra=()):
    """Requests of a robot that goes on from chunk to chunk: what it sent, and the chunk it was given."""
    relay = Relay(Server(pipeline, "--late-ok", *extra).port)
    with client(relay.own, seed=7, rtc=kind, queue_threshold=1.0, first_delay=3, rate_hz=5) as robot:
        robot.observe(observation)
        robot.ready(120 * SLOW)
        until(lambda: len(relay.answers) > 3, lambda: (robot.observe(observation), robot.next()))
        check(robot.stats.inference_delay >= 1, robot.stats)
    check(left not in relay.sent[0], "the first chunk is free")
    return relay.sent, [numbers(a["actions"]) for a in relay.answers[1:]]


@test
def given_rows_are_those_of_run():
    asked, chunks = guided(PREFIX, "prev_actions", seen(PREFIX), "given")
    several = 0
    for request, chunk in list(zip(asked, chunks))[:4]:
        given = numbers(request["prev_actions"]) if "prev_actions" in request else np.zeros((0, 4))
        options = ["-i", "prev_actions=" + json.dumps(given.tolist())] if len(given) else []
        check(run(PREFIX, seen(PREFIX), *options).tobytes() == chunk.tobytes(), len(given))
        check(given.tobytes() == chunk[:len(given)].tobytes(), "they come back")
        several += len(given) > 0
    check(several >= 2, [list(r) for r in asked])


@test
def guided_chunks_are_those_of_run():
    case = "tests/golden/smolvla/base_rtc"
    folder = os.path.join(BOX, "arm")
    subprocess.run(["cp", "-r", "tests/golden/smolvla/base/checkpoint", folder], check=True)
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    folder += "/pretrained_model"
    subprocess.run([sys.executable, "tests/guided.py", "folder", folder, case], check=True)
    from smolvla_pipeline import tensor
    said, path = json.load(open(case + "/case.json")), case + "/inputs.safetensors"
    observation = {"task": said["task"]}
    for name, key in [("observation.state",) * 2] + [(c, "image." + c) for c in said["cameras"]]:
        shape, data = tensor(path, key)
        observation[name] = np.frombuffer(data, np.float32 if name == key else np.uint8).reshape(shape)
    asked, chunks = guided(folder, "prev_chunk_left_over", observation, "guided")
    pulled = 0
    for request, chunk in list(zip(asked, chunks))[:3]:
        options = []
        if "prev_chunk_left_over" in request:
            left, delay = numbers(request["prev_chunk_left_over"]), numbers(request["inference_delay"])
            check(0 < len(left) <= len(chunk) and 1 <= delay[0] <= len(left), len(left), delay)
            options = ["-i", "prev_chunk_left_over=" + json.dumps(left.tolist()), "-i", "inference_delay=" + json.dumps(delay.tolist())]
            pulled += 1
        check(run(folder, observation, *options).tobytes() == chunk.tobytes(), options)
    check(pulled >= 1)


@test
def the_metadata_name_what_goes_along():
    server = Server(PREFIX, "--late-ok")
    relay = Relay(server.port)
    with client(relay.own) as robot:
        until(lambda: relay.answers and robot.stats.connected)
    told = relay.answers[0]["tectum"]
    check(told["pipeline"], told)
    check({"name": "prev_actions", "kind": "along", "dtype": "float32", "shape": [8, 4], "required": False} in told["inputs"], told)
    check({"name": "prompt", "kind": "text", "required": True} in told["inputs"], told)
    check(told["actions"] == {"name": "actions", "rows": 16, "columns": 4, "dtype": "float64"} | {
        k: told["actions"][k] for k in ("rate_hz", "execute") if k in told["actions"]}, told)


@test
def clocks_and_sessions():
    relay = Relay(Server(DEMO, "--late-ok").port)
    with client(relay.own, queue_threshold=1.0, session_id="arm") as robot:
        until(lambda: len(relay.answers) > 4, lambda: robot.observe(seen()))
        stats = robot.stats
        # One machine has one clock: the offset is wrong by no more than the client says.
        check(stats.clock_error > 0 and abs(stats.clock_offset) <= stats.clock_error, stats)
        check(0 < stats.round_trip_p50 <= stats.round_trip_p99 and stats.delay_p50 >= stats.round_trip_p50, stats)
        robot.reset()
        n = len(relay.sent)
        until(lambda: len(relay.sent) > n + 1, lambda: robot.observe(seen()))
    told = [r["tectum"] for r in relay.sent]
    check("obs_ts" not in told[0] and "obs_ts" in told[-1], told)
    check(told[0]["session_id"] == "arm/0" and told[-1]["session_id"] == "arm/1", told)
    check(all(t["timing"] is True for t in told), told)


@test
def a_server_that_ends_and_comes_back():
    server = Server(DEMO, "--late-ok")
    with client(server.port) as robot:
        robot.observe(seen())
        robot.ready(60 * SLOW)
        robot.next()
        server.end(signal.SIGKILL)
        until(lambda: robot.stats.failures > 0, lambda: robot.observe(seen()))
        until(lambda: robot.next().source == "held")
        check("127.0.0.1" in robot.stats.message, robot.stats)
        p = subprocess.Popen([PROGRAM, "serve", DEMO, "--port", str(server.port), "--threads", "1", "--late-ok"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        servers.append(p)
        check(" on ws://" in p.stdout.readline())
        until(lambda: robot.next().source == "fresh", lambda: robot.observe(seen()))
        check(robot.stats.connections == 2, robot.stats)


@test
def what_the_server_refuses_is_told():
    with client(Server(DEMO, "--late-ok").port) as robot:
        wrong = {**seen(), "observation/state": np.zeros(3, np.float32)}
        until(lambda: "observation/state" in robot.stats.message, lambda: robot.observe(wrong))
        check(robot.next().values is None and robot.next().source == "none")
        try:
            robot.ready(0)
            check(False)
        except tectum.TimeError as e:
            check("no chunk yet" in str(e), e)
        until(lambda: robot.next().source == "fresh", lambda: robot.observe(seen()))


@test
def keys():
    port = Server(DEMO, "--late-ok", "--key", key_file("a-key-of-a-robot-for-a-test")).port
    with client(port, key="another-key-of-a-robot") as robot:
        until(lambda: "401" in robot.stats.message)
    with client(port, key="a-key-of-a-robot-for-a-test") as robot:
        until(lambda: robot.next().source == "fresh", lambda: robot.observe(seen()))


def after_a_first_command(on_miss, **options):
    """A robot whose deadline never holds, in the session of one that was given a command."""
    port = Server(DEMO, "--late-ok", "--set", "nodes.act.deadline.on_miss=" + on_miss).port
    with client(port, session_id="arm") as robot:
        until(lambda: robot.next().source == "fresh", lambda: robot.observe(seen()))
    return client(port, session_id="arm", deadline_ms=0.01, **options)


@test
def substitutes_and_stops():
    with after_a_first_command("hold", on_dry="on_miss") as robot:
        until(lambda: robot.next().source == "substitute", lambda: robot.observe(seen()))
        check(robot.stats.substitutes > 0 and robot.next().chunk == -1, robot.stats)
    with after_a_first_command("hold") as robot:
        until(lambda: robot.stats.substitutes > 1, lambda: robot.observe(seen()))
        check(robot.next().source == "none", "they are not asked for")
    with after_a_first_command("stop") as robot:
        until(lambda: robot.next().source == "stopped", lambda: robot.observe(seen()))
        check(robot.next().values is None)


@test
def wrong_calls_raise():
    for options, word in (({"rate_hz": 0}, "rate_hz"), ({"merge": "lienar"}, "lienar"), ({"horizn": 3}, "horizn"),
                          ({"rtc": None}, "rtc"), ({"seed": -1}, "seed"), ({"key": ""}, "key"),
                          ({"discrete": [64]}, "discrete"), ({"discrete": ["grip"]}, "discrete")):
        try:
            client(1, **options)
            check(False, options)
        except tectum.InvalidError as e:
            check(word in str(e), e)
    robot = client(1)
    try:
        robot.observe({"x": np.zeros((2, 2))[:, 0]})
        check(False)
    except tectum.ShapeError as e:
        check("contiguous" in str(e), e)
    robot.close()
    robot.close()
    try:
        robot.next()
        check(False)
    except tectum.ClosedError as e:
        check("client is closed" in str(e), e)


@test
def the_page_s_example_prints_what_it_says():
    page = open("doc/async-client.md").read()
    code, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", page, re.S).groups()
    url = f"ws://127.0.0.1:{Server(DEMO, '--late-ok').port}"
    out = subprocess.run([sys.executable, "-c", f"url = {url!r}\n{code}"], stdout=subprocess.PIPE, text=True, timeout=60 * SLOW)
    check(out.returncode == 0 and out.stdout == printed, out.stdout, printed)


class Encrypted(Server):
    tls = True


@test
def tls_gives_the_rows_of_run_to_whom_it_is_believed_by():
    pem, key = os.path.join(BOX, "robot.pem"), os.path.join(BOX, "robot.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-keyout", key, "-out", pem, "-subj", "/CN=robot", "-addext", "subjectAltName=DNS:robot"],
                   check=True, capture_output=True)
    os.chmod(key, 0o600)
    port = Encrypted(DEMO, "--late-ok", "--tls-cert", pem, "--tls-key", key).port
    with tectum.AsyncClient(f"wss://127.0.0.1:{port}", rate_hz=20, hold_ms=-1, seed=7, ca_file=pathlib.Path(pem),
                            server_name="robot") as robot:
        robot.observe(seen())
        robot.ready(60 * SLOW)
        check(rows(robot).tobytes() == run(DEMO, seen()).tobytes())
    with tectum.AsyncClient(f"wss://127.0.0.1:{port}", rate_hz=20, ca_file=pem) as robot:
        until(lambda: robot.stats.failures, lambda: robot.observe(seen()))
        check("for another host" in robot.stats.message and robot.stats.requests == 0, robot.stats)
        check(robot.next().values is None)
    for options, word in (({"ca_file": "/no/such/file"}, "/no/such/file"), ({"ca_file": key}, "certificate 1")):
        try:
            tectum.AsyncClient(f"wss://127.0.0.1:{port}", rate_hz=20, **options)
            check(False)
        except tectum.Error as e:
            check(word in str(e), e)


@test
def follow_prints_what_it_was_given():
    follow = os.path.join(os.path.dirname(PROGRAM), "follow")
    out = subprocess.run([follow, f"ws://127.0.0.1:{Server(DEMO, '--late-ok').port}", "1"], stdout=subprocess.PIPE,
                         text=True, timeout=60 * SLOW).stdout
    check(re.match(r"100 turns: \d+ fresh, \d+ held, \d+ without; [1-9]\d* chunks", out), out)


sys.exit(main())
