"""serve.py - `tectum serve` from the outside, TAP.  python3 tests/serve.py PROGRAM, from the root."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_client import Array, Refused, Socket, pack, unpack  # noqa: E402

PROGRAM = sys.argv[1]
PIPELINE = "pipelines/demo_metaworld.lua"
# The one place that knows how the robot's inputs are called, and their sizes.
PREFIX = "observation/"
IMAGE, WRIST, STATE, PROMPT = (PREFIX + "image", PREFIX + "wrist_image", PREFIX + "state",
                               "prompt")
ROWS, COLUMNS, SIDE = 16, 4, 64
SLOW = float(os.environ.get("TEST_SLOWNESS", "1"))  # sanitizers take their time
REASON = "Internal server error. Traceback included in previous frame."

picture = Array("|u1", [SIDE, SIDE, 3], bytes(SIDE * SIDE * 3))


def observation(prompt="press the button", **more):
    obs = {IMAGE: picture, WRIST: picture, STATE: Array.floats([0.0, 0.6, 0.2, 1.0]),
           PROMPT: prompt}
    obs.update(more)
    return obs


def asked(prompt="press the button", **options):
    return observation(prompt, tectum=options)


class Server:
    all = []

    def __init__(self, *options, pipeline=PIPELINE):
        # A sanitizer's texts must not be given up.
        slow = ["--set", "nodes.talk.deadline.ms=60000"] if SLOW > 1 and pipeline == PIPELINE else []
        self.p = subprocess.Popen(
            [PROGRAM, "serve", pipeline, "--port", "0", "--host", "127.0.0.1", "--threads", "1",
             "--late-ok", *slow, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        Server.all.append(self.p)
        self.line = self.p.stdout.readline()
        if "ws://" not in self.line:
            raise AssertionError("not ready: " + self.line + self.p.stderr.read())
        self.port = int(re.search(r"ws://[^ \"]*:(\d+)", self.line)[1])

    def connect(self, **how):
        s = Socket(self.port, timeout=20 * SLOW, **how)
        assert list(s.reply()) == ["tectum"], "metadata"
        return s

    def rss_kib(self):
        for line in open("/proc/%d/status" % self.p.pid):
            if line.startswith("VmRSS"):
                return int(line.split()[1])

    def end(self, how=signal.SIGTERM):
        self.p.send_signal(how)
        out, err = self.p.communicate(timeout=30 * SLOW)
        return self.p.returncode, out, err


tests = []


def test(function):
    tests.append(function)
    return function


def check(x, *what):
    if not x:
        raise AssertionError(what)


def works(server, s=None):
    """Somebody else is still served."""
    s = s or server.connect()
    check(s.infer(observation())["actions"].shape == (ROWS, COLUMNS))


@test
def a_reply_is_openpi_s_map(server):
    s = server.connect()
    first, second = s.infer(observation()), s.infer(observation())
    check(list(first) == ["actions", "policy_timing", "server_timing"], list(first))
    check(first["actions"].dtype == "<f8" and first["actions"].shape == (ROWS, COLUMNS))
    check(list(first["policy_timing"]) == ["infer_ms"])
    check(list(first["server_timing"]) == ["infer_ms"], first)
    check(list(second["server_timing"]) == ["infer_ms", "prev_total_ms"], second)
    check(second["server_timing"]["prev_total_ms"] >= first["server_timing"]["infer_ms"])
    check(first["server_timing"]["infer_ms"] >= first["policy_timing"]["infer_ms"] > 0)


@test
def a_reply_says_when_it_was_asked_and_when_it_left(server):
    s = server.connect()
    begin = time.monotonic_ns()
    t = s.infer(asked(timing=True))["tectum"]["timing"]
    check(begin <= t["received_ts"] < t["left_ts"] <= time.monotonic_ns(), begin, t)
    parts = sum(t[name] for name in ("wait_us", "decode_us", "prepare_us", "model_us", "finish_us"))
    check(abs((t["left_ts"] - t["received_ts"]) / 1000 - parts) < 10, t)


@test
def equal_seeds_give_equal_bytes(server):
    a, b = server.connect(path="/v1/any"), server.connect(headers="Authorization: Api-Key x\r\n")
    one = a.infer(asked(seed=7))["actions"].data
    works(server, b)
    check(b.infer(asked(seed=7))["actions"].data == one)
    check(a.infer(asked(seed=8))["actions"].data != one)
    check(a.infer(observation())["actions"].data != a.infer(observation())["actions"].data)
    noise = Array("<f4", [ROWS, COLUMNS], struct.pack("<%df" % (ROWS * COLUMNS),
                                                      *[0.5] * (ROWS * COLUMNS)))
    n = a.infer(asked(noise=noise))["actions"].data
    check(n == b.infer(asked(noise=noise, seed=7))["actions"].data and n != one)


@test
def connections_are_served_in_turn(server):
    order, lock, many = [], threading.Lock(), 12

    def client(name):
        s = server.connect()
        for _ in range(many):
            s.infer(observation())
            with lock:
                order.append(name)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(len(order) == 3 * many)
    # When one is done, the others are nearly so.
    first = min(max(i for i, n in enumerate(order) if n == k) for k in range(3))
    check(first >= 2 * many, order)


@test
def texts_belong_to_their_observation(server):
    a, b = server.connect(), server.connect()
    alone = {p: a.infer(asked(p, tasks=["text"]))["tectum"] for p in
             ("press the button", "open the drawer")}
    check(alone["press the button"]["text"] != alone["open the drawer"]["text"], alone)
    stop = threading.Event()

    def other():
        while not stop.is_set():
            b.infer(observation("open the drawer"))

    t = threading.Thread(target=other)
    t.start()
    try:
        c = server.connect()
        for _ in range(6):
            for p, s in (("press the button", a), ("open the drawer", c)):
                s.send(asked(p, tasks=["action", "text"], seed=3))
            for p, s in (("press the button", a), ("open the drawer", c)):
                r = s.reply()
                check(r["tectum"]["text"] == alone[p]["text"], r["tectum"], alone[p])
                check(r["tectum"]["text_done"] is True and r["tectum"]["source"] == "fresh")
                check(r["actions"].shape == (ROWS, COLUMNS))
    finally:
        stop.set()
        t.join()
    r = a.infer(asked(tasks=["text"]))
    check("actions" not in r and list(r["tectum"]) == [
        "text", "text_done", "request", "refused", "reason", "chunk_id", "obs_ts", "source",
        "age_us", "missed"], r)
    check("text" not in a.infer(asked())["tectum"])


@test
def a_client_asks_for_its_text_and_hears_of_a_refusal(server):
    a = server.connect()
    whole = a.infer(asked(tasks=["text"]))["tectum"]
    check(whole["text_done"] and whole["reason"] in ("eos", "length") and not whole["refused"], whole)
    r = a.infer(asked(ask={"node": "talk", "max_tokens": 2, "prio": 1}))
    t = r["tectum"]
    check(r["actions"].shape == (ROWS, COLUMNS) and t["reason"] == "length", t)
    check(t["text_done"] and whole["text"].startswith(t["text"]) and t["text"] != whole["text"], t)
    check(t["request"] > whole["request"], t, whole)
    one = Server("--set", "resources.lang.slots=1", "--set", "nodes.talk.spawn=on_request()",
                 "--policy", "oxygen", "--param", "k=2")
    many = [one.connect() for _ in range(6)]
    for s in many:
        s.send(asked(ask={}))
    told = [s.reply()["tectum"] for s in many]
    one.end()
    check(any(t["refused"] and t["reason"] == "no kv slot" and not t["text_done"]
              for t in told), told)
    check(any(t["text_done"] and not t["refused"] for t in told), told)
    for bad, word in (({"node": "tlk"}, "tlk"), ({"max_tokens": 0}, "max_tokens"), (3, "map"),
                      ({"prio": -1}, "prio"), ({"max_tokens": 1.5}, "whole"), ({"nod": "x"}, "nod")):
        s = server.connect()
        s.send(asked(ask=bad))
        text, code, _ = s.failure()
        check(word in text and code == 1011, bad, text)


@test
def wrong_requests_are_told_and_end_only_their_own(server):
    other = server.connect()
    missing = observation()
    del missing[IMAGE]
    nameless = observation()
    del nameless[PROMPT]
    wrong = [
        (pack(missing), IMAGE), (pack(nameless), PROMPT),
        (pack(observation(**{STATE: Array.floats([0.0] * 3)})), STATE),
        (pack(observation(**{STATE: Array.floats([float("nan")] * 4)})), "NaN"),
        (pack(observation(**{IMAGE: Array("|u1", [64, 63, 3], bytes(64 * 63 * 3))})), IMAGE),
        (pack(observation(**{IMAGE: Array("|u1", [64, 64, 3], b"123")})), "3 bytes"),
        (pack(observation(**{IMAGE: Array("|O", [1], b"12345678")})), "|O"),
        (pack(asked(sead=1)), "did you mean 'seed'"), (pack(asked(tasks=["fly"])), "tasks"),
        (pack(asked(noise=Array.floats([1.0], "<f4"))), "noise"),
        (pack(asked(noise=Array("<f4", [ROWS, COLUMNS], struct.pack(
            "<%df" % (ROWS * COLUMNS), *[0.0] * 5, 10.5, *[0.0] * (ROWS * COLUMNS - 6))))),
         "tectum.noise: element 6 is 10.5; standard normal noise is within"),
        (pack(observation(**{STATE: Array.floats([0.0, 1e300, 0.0, 0.0])})), "entry 2 is 1e+300"),
        (pack([1, 2]), "map"), (b"", "msgpack"), (b"\xc1", "msgpack"),
        (pack(observation())[:-1], "msgpack"), (pack(observation()) + b"\xc0", "follow"),
        (b"\x81\xa1x" * 9 + b"\x01", "deep"), (b"\x81\xa1x" * 30000, "msgpack"), (b"\xdf\xff\xff\xff\xff", "msgpack"),
        (pack(observation("x" * 100000)), PROMPT),
    ]
    for message, word in wrong:
        s = server.connect()
        s.frame(2, message)
        text, code, reason = s.failure()
        check(word in text and code == 1011 and reason == REASON, word, text, code, reason)
        works(server, other)
    s = server.connect()
    s.frame(1, b"hello")
    text, code, _ = s.failure()
    check("text" in text and code == 1011)
    works(server, other)


@test
def unknown_keys_are_ignored(server):
    s = server.connect()
    depth = Array("<u2", [8, 8, 1], bytes(128))
    r = s.infer(observation(note="x", depth=depth, list=[1, 2], names=["a"], none=None,
                            more={"a": 1}, prev_actions=Array.floats([1.0], "<f4")))
    check(r["actions"].shape == (ROWS, COLUMNS))


@test
def frames_that_break_the_rules_end_only_their_own(server):
    other = server.connect()
    for opcode, data, how in [(3, b"x", {}), (11, b"", {}), (9, b"x" * 126, {}),
                              (9, b"x", {"final": False}), (0, b"x", {}), (2, b"", {"claim": 5}),
                              (2, b"x" * 50, {"masked": False}), (8, b"", {}), (8, b"\x00", {})]:
        s = server.connect()
        s.frame(opcode, data, **how)
        works(server, other)
        s.close()
    s = server.connect()
    s.s.sendall(os.urandom(4000))
    works(server, other)
    for start in (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST /x HTTP/1.1\r\n\r\n",
                  b"GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                  b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
                  b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100000):
        s = socket.create_connection(("127.0.0.1", server.port))
        try:
            s.sendall(start + os.urandom(4000))
        except OSError:
            pass
        works(server, other)
        s.close()


@test
def messages_come_in_pieces_with_pings_between(server):
    s = server.connect()
    message = pack(asked(seed=1))
    want = s.infer(asked(seed=1))["actions"].data
    pieces = [message[i:i + 997] for i in range(0, len(message), 997)]
    for i, piece in enumerate(pieces):
        s.frame(2 if i == 0 else 0, piece, final=i == len(pieces) - 1)
        if i % 7 == 0:
            s.frame(9, b"%d" % i)
    pongs = 0  # fewer than pings: RFC 6455 lets one answer several
    while True:
        opcode, data = s.read()
        if opcode == 2:
            break
        pongs += opcode == 10
    check(unpack(data)["actions"].data == want and pongs > 0, pongs)


@test
def a_request_sent_early_waits_in_order(server):
    s = server.connect()
    one, two = (s.infer(asked(seed=i))["actions"].data for i in (1, 2))
    for _ in range(3):
        s.send(asked(seed=1))
        s.send(asked(seed=2))
        check([s.reply()["actions"].data for _ in range(2)] == [one, two])
    crowd = server.connect()
    crowd.burst([pack(asked(seed=1, tasks=["action", "text"]))] * 3)
    code = None
    while code is None:     # the third ends it; the first may be answered before
        opcode, data = crowd.read()
        code = int.from_bytes(data[:2], "big") if opcode == 8 else None
    check(code == 1008, code)
    works(server, s)


@test
def a_message_of_a_gigabyte_is_refused(server):
    other = server.connect()
    before = server.rss_kib()
    s = server.connect()
    s.frame(2, b"x" * 100000, claim=1 << 30)
    _, code, _ = s.failure()
    check(code == 1009, code)
    s = server.connect()
    code = None
    try:
        for i in range(1024):
            s.frame(2 if i == 0 else 0, b"x" * (1 << 20), final=False)
    except OSError:
        pass
    try:
        code = s.failure()[1]
    except (OSError, EOFError):
        pass
    check(code in (1009, None), code)
    works(server, other)
    check(server.rss_kib() - before < 200 << 10, server.rss_kib() - before)


@test
def who_vanishes_or_stalls_keeps_nobody(server):
    other = server.connect()
    for _ in range(20):
        s = server.connect()
        s.send(asked(tasks=["action", "text"]))
        s.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    stalled = [server.connect() for _ in range(5)]
    for s in stalled[:3]:
        s.frame(2, b"x" * 10, claim=1000)  # half a message
    for s in stalled[3:]:
        for _ in range(3):
            s.send(observation())  # never reads
    slow = []
    for _ in range(8):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(b"GET / HTT")
        slow.append(s)
    for _ in range(5):
        works(server, other)
    works(server)
    for s in slow + [s.s for s in stalled]:
        s.close()


# --- deadlines ---------------------------------------------------------------------------------

SOON, LATE = 1.0, 60000.0  # ms: before any frame ends, after every one


def slow_server(*options):
    """Frames of a hundred milliseconds and more."""
    return Server("--set", "nodes.act.steps=%d" % (400 / SLOW),
                  "--set", "nodes.act.deadline.limit=1000", *options)


def rows(r):
    a = r["actions"]
    n = a.shape[1]
    x = struct.unpack("<%dd" % (a.shape[0] * n), a.data)
    return [x[i:i + n] for i in range(0, len(x), n)]


def timed(s, **options):
    began = time.monotonic()
    r = s.infer(asked(**options))
    return r, (time.monotonic() - began) * 1e3


@test
def replies_leave_at_their_deadline(_):
    server = slow_server()
    s = server.connect()
    first, usual = timed(s, deadline_ms=LATE)
    t = first["tectum"]
    check(t["source"] == "fresh" and t["age_us"] >= 0 and len(rows(first)) == ROWS, t)
    soon = usual / 4
    for _ in range(3):
        held, took = timed(s, deadline_ms=soon)
        h = held["tectum"]
        check(h["source"] == "held" and h["missed"] is True and h["chunk_id"] == -1, h)
        check(rows(held) == [rows(first)[-1]] * ROWS)
        check(h["obs_ts"] == t["obs_ts"] and h["age_us"] > t["age_us"], h, t)
        check(soon - 2 <= took <= soon + 60 * SLOW, took, soon, usual)
    fresh, took = timed(s, deadline_ms=LATE)
    check(fresh["tectum"]["source"] == "fresh" and fresh["tectum"]["obs_ts"] > t["obs_ts"])
    held, took = timed(s, tasks=["action", "text"], deadline_ms=soon)
    check(held["tectum"]["source"] == "held" and held["tectum"]["text_done"] is False, held)
    check(rows(held) == [rows(fresh)[-1]] * ROWS)
    other = server.connect()  # another robot has no command yet
    none, _ = timed(other, deadline_ms=soon)
    check(none["tectum"]["source"] == "none" and rows(none) == [], none)
    check(none["actions"].shape == (0, COLUMNS))
    other.send(asked(deadline_ms=SOON))
    del other  # gone before its deadline
    check(timed(s, deadline_ms=LATE)[0]["tectum"]["source"] == "fresh")
    status, out, err = server.end()
    check(status == 0 and "answered at their deadline" in err, status, err)


@test
def the_last_chunk_is_aligned_with_time(_):
    check(any(aligned_with_time() for _ in range(8)), "no frame began before its deadline")


def aligned_with_time():
    """False: the machine was too slow to begin the frame of the first late request before it was late."""
    server = slow_server("--set", "nodes.act.deadline.on_miss=last_chunk", "--actions", "4")
    s = server.connect()
    r, usual = timed(s, deadline_ms=LATE)
    first = rows(r)
    check(len(first) == ROWS)
    for at, ms in ((4, usual / 4), (8, SOON), (12, SOON)):  # the frame of the first one begins
        r, _ = timed(s, deadline_ms=ms)
        check(r["tectum"]["source"] == "stale" and rows(r) == first[at:at + 4], at, r["tectum"])
    time.sleep(2 * SLOW)  # the first of them has become known, late
    r, _ = timed(s, deadline_ms=SOON)
    server.end()
    if r["tectum"]["source"] == "held":
        return False
    check(r["tectum"]["source"] == "stale" and rows(r)[0] not in first, r["tectum"])
    return True


@test
def a_chunk_goes_on_where_its_node_does_not_run(_):
    server = Server("--set", "nodes.act.spawn=every(2)")
    s = server.connect()
    for _ in range(2):
        first, second = timed(s, deadline_ms=LATE)[0], timed(s, deadline_ms=LATE)[0]
        check(rows(second)[:8] == rows(first)[8:] and rows(second)[8:] == rows(first)[15:] * 8)
        check(second["tectum"]["chunk_id"] == first["tectum"]["chunk_id"] and not second["tectum"]["missed"])
    server.end()
    server = Server("--set", "nodes.act.spawn=every(2)", "--actions", "4")
    s = server.connect()
    first, second = timed(s, deadline_ms=LATE)[0], timed(s, deadline_ms=LATE)[0]
    check(rows(second)[:12] == rows(first)[4:], "--actions says how many the client carries out")
    server.end()


@test
def a_stop_lasts_until_reset(_):
    server = slow_server("--set", "nodes.act.deadline.on_miss=stop")
    s = server.connect()
    check(timed(s, deadline_ms=LATE)[0]["tectum"]["source"] == "fresh")
    for ms in (SOON, LATE):
        r, _ = timed(s, deadline_ms=ms)
        check(r["tectum"]["source"] == "stopped" and rows(r) == [], r)
    check(timed(s)[0]["tectum"]["source"] == "stopped")
    other = server.connect()  # the stop is the server's, not the connection's
    check(timed(other)[0]["tectum"]["source"] == "stopped")
    s.close()
    again = server.connect()
    check(timed(again)[0]["tectum"]["source"] == "stopped")
    check(timed(again, reset=True)[0]["tectum"]["source"] == "fresh")
    check(timed(other)[0]["tectum"]["source"] == "fresh")
    _, _, err = server.end()
    check("stopped, for every client" in err and "the stop was reset" in err, err)


def limited_server(limits, *options):
    """The bundled robot with these limits of its actions."""
    folder = tempfile.mkdtemp()
    path = folder + "/arm.lua"
    with open(path, "w") as f:
        f.write('local robot = include "robots/metaworld.lua"\nrobot.actions.limits = %s\n'
                'return extend("demo_metaworld.lua", { robot = robot })\n' % limits)
    server = Server(*options, pipeline=path)
    os.unlink(path)
    os.rmdir(folder)
    return server


@test
def actions_beyond_the_limits_are_clipped(_):
    server = limited_server("{ max = 0.5 }", "--format", "json")
    s = server.connect()
    r = s.infer(asked(seed=7))
    values = [v for row in rows(r) for v in row]
    check(max(values) == 0.5 and len(values) == ROWS * COLUMNS, values)
    check(r["tectum"]["source"] == "fresh" and r["tectum"]["limited"] > 0, r)
    check(max(v for row in rows(s.infer(observation())) for v in row) == 0.5)
    code, out, err = server.end()
    limits = json.loads(out.splitlines()[-1])["limits"]
    check(limits["requests"] == 2 and limits["refused"] == 0 and limits["values"] > 2, limits)
    check(code == 0 and "beyond the robot's limits; the last: row 1, column 2 is" in err, err)


@test
def a_chunk_begins_a_step_from_the_last_command(_):
    server = limited_server("{ max_step = 0.05 }")
    s = server.connect()
    last = rows(s.infer(asked(seed=7)))[7]  # the robot says execute = 8
    for seed in range(8, 12):
        r = s.infer(asked(seed=seed, tasks=["action", "text"]) if seed == 9 else asked(seed=seed))
        far = max(abs(a - b) for a, b in zip(rows(r)[0], last))
        check(far <= 0.05 + 1e-9, seed, far)
        check(seed != 9 or r["tectum"]["text"], r)  # the text is as it was
        last = rows(r)[7]
    server.end()


@test
def actions_beyond_the_limits_are_held_or_stop(_):
    server = limited_server('{ max = 0.5, on = "hold" }')
    s = server.connect()
    r = s.infer(asked())
    check(r["tectum"]["source"] == "none" and r["tectum"]["cause"] == "limits", r)
    check(rows(r) == [] and r["tectum"]["missed"], r)
    check(s.infer(asked(tasks=["text"]))["tectum"]["text"] != "")
    server.end()
    server = limited_server('{ max = 0.5, on = "stop" }')
    s = server.connect()
    check(s.infer(asked())["tectum"]["source"] == "stopped")
    check(rows(server.connect().infer(observation())) == [])
    _, _, err = server.end()
    check("stopped, for every client" in err and "were refused" in err, err)


@test
def observations_have_the_age_that_clients_say(server):
    s = server.connect()
    now = s.infer(asked())["tectum"]["obs_ts"]
    r = s.infer(asked(obs_ts=now - 5_000_000_000))["tectum"]
    check(r["obs_ts"] == now - 5_000_000_000 and r["age_us"] > 5_000_000, r)
    for word, value in (("obs_ts", time.time_ns() * 2), ("obs_ts", "now"), ("reset", 1),
                        ("deadline_ms", 0)):
        s = server.connect()
        s.send(asked(**{word: value}))
        text, code, _ = s.failure()
        check("tectum." + word in text and code == 1011, word, text, code)


@test
def health_is_told_over_http(server):
    url = "http://127.0.0.1:%d" % server.port
    with urllib.request.urlopen(url + "/healthz") as r:
        check(r.status == 200 and r.read() == b"OK\n")
        check(r.headers["content-type"].startswith("text/plain"))
    try:
        urllib.request.urlopen(url + "/other")
        check(False)
    except urllib.error.HTTPError as e:
        check(e.code == 426, e.code)


@test
def pings_are_answered_while_it_computes(_):
    server = Server("--set", "nodes.act.steps=%d" % (1000 / SLOW))
    s = server.connect()
    s.send(observation())
    begin, times = time.monotonic(), []
    for i in range(5):
        s.frame(9, b"%d" % i)
        times.append(time.monotonic())
        check(s.read() == (10, b"%d" % i))
        times[-1] = time.monotonic() - times[-1]
    check(s.message()[0] == 2)
    took = time.monotonic() - begin
    check(max(times) < took / 2, times, took)
    check(server.end()[0] == 0)


@test
def options_bound_what_is_served(_):
    server = Server("--limit-rows", "10", "--max-connections", "2", "--stall-s", "1",
                    "--default-prompt", "press the button", "--max-message-mib", "1",
                    "--format", "json")
    a, b = server.connect(), server.connect()
    try:
        Socket(server.port)
        check(False)
    except Refused as e:
        check(" 503 " in str(e), str(e))
    nameless = observation()
    del nameless[PROMPT]
    check(a.infer(nameless)["actions"].shape == (10, COLUMNS))
    a.frame(2, b"x" * 10, claim=100)
    check(a.failure()[1] == 1008)
    a = server.connect()
    a.frame(2, b"x", claim=(1 << 20) + 1)
    check(a.failure()[1] == 1009)
    for _ in range(30):
        b.infer(observation())
    code, out, err = server.end(signal.SIGINT)
    check(code == 0 and b.failure()[1] == 1001, code)
    ready = json.loads(server.line)
    check(ready["serving"] == "demo_metaworld" and ready["columns"] == COLUMNS, ready)
    stats = json.loads(out)
    check(stats["policy"]["calls"] >= 31 and not stats["policy"]["failures"], stats["policy"])
    check(stats["requests"] == 31 and stats["errors"] == 2 and stats["connections"] == 3, stats)
    check(all(0 < stats["overhead_us"][q] for q in ("p50", "p99", "max")), stats)


@test
def aloha_s_maps_and_metadata(_):
    server = Server("--random-weights", "1", "--size", "tiny",
                    pipeline="pipelines/pi05_aloha.lua")
    view = Array("|u1", [3, 48, 64], bytes(3 * 48 * 64))
    state = Array.floats([0.1] * 14, "<f4")
    s = Socket(server.port)
    told = s.reply()
    check(told["reset_pose"] == [0, -1.5, 1.5, 0, 0, 0] and list(told) == ["reset_pose", "tectum"], told)
    told = told["tectum"]
    check(told["actions"]["rows"] == 50 and told["actions"]["columns"] == 14, told)
    check({"name": "images/cam_high", "kind": "image", "dtype": "uint8", "shape": [None, None, 3], "required": True}
          in told["inputs"], told)
    check({"name": "state", "kind": "state", "dtype": "float32", "shape": [14], "required": True} in told["inputs"], told)
    r = s.infer({"images": {"cam_high": view, "cam_low": view}, "state": state, "prompt": "go"})
    check(r["actions"].shape == (50, 14), r["actions"].shape)
    s.send({"images": {"cam_high": view, "cam_hihg": view}, "state": state, "prompt": "go"})
    text, code, _ = s.failure()
    check("cam_hihg" in text and "did you mean 'images/cam_high'" in text and code == 1011, text)
    check(server.end()[0] == 0)


@test
def texts_that_are_read_are_listed(_):
    for pipeline, texts in (("tests/pipelines/text_task.lua", [{"name": "prompt", "kind": "text", "required": True}]),
                            ("tests/pipelines/text_loop.lua", []), ("pipelines/checkpoints/metaworld_act", [])):
        server = Server(pipeline=pipeline)
        inputs = Socket(server.port).reply()["tectum"]["inputs"]
        check([i for i in inputs if i["kind"] == "text"] == texts, inputs)
        check(server.end()[0] == 0)


@test
def a_port_in_use_is_told(server):
    p = subprocess.run([PROGRAM, "serve", PIPELINE, "--port", str(server.port), "--host",
                        "127.0.0.1"], capture_output=True, text=True)
    check(p.returncode == 3 and p.stderr.count("\n") == 1 and "--port" in p.stderr and "in use" in p.stderr, p)
    p = subprocess.run([PROGRAM, "serve", PIPELINE, "--port", "65536"], capture_output=True,
                       text=True)
    check(p.returncode == 2 and p.stderr.count("\n") == 1, p)


@test
def it_ends_with_a_line_of_figures(server):
    s = server.connect()
    s.send(observation())
    code, out, err = server.end()
    check(code == 0 and out == "", code, out)
    check("requests" in err.splitlines()[-1] and "overhead p50" in err, err)


@test
def a_memory_s_threads_leave_it_to_end(_):
    """Also where whoever started it ignores SIGINT, as a shell does for what runs behind it."""
    for how, before in ((signal.SIGTERM, signal.SIG_DFL), (signal.SIGINT, signal.SIG_DFL),
                        (signal.SIGINT, signal.SIG_IGN)):
        with tempfile.TemporaryDirectory() as folder:
            old = signal.signal(signal.SIGINT, before)
            try:
                planner = Server("--random-weights", "1", "--size", "tiny", "--set",
                                 "resources.mem.store=" + folder + "/store",
                                 "--set", "resources.mem.tokens=512", "--set",
                                 "resources.ctx.tokens=1024", "--set",
                                 "resources.plans.tokens=1040",
                                 pipeline="pipelines/qwen_planner.lua")
            finally:
                signal.signal(signal.SIGINT, old)
            code, _out, err = planner.end(how)
        check(code == 0 and "requests" in err.splitlines()[-1], code, err)


def main():
    server, failed = Server("--stall-s", "20"), 0
    for i, t in enumerate(tests):
        try:
            t(server)
            print("ok %d - %s" % (i + 1, t.__name__), flush=True)
        except Exception as e:  # every failure is one line of TAP, the next test goes on
            failed += 1
            print("not ok %d - %s" % (i + 1, t.__name__), flush=True)
            print("#", type(e).__name__, str(e)[:1500], "line",
                  e.__traceback__.tb_next and e.__traceback__.tb_next.tb_lineno, file=sys.stderr)
    print("1..%d" % len(tests))
    for p in Server.all:
        if p.poll() is None:
            p.kill()
    sys.exit(failed > 0)


main()
