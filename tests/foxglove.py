"""foxglove.py - live values of a running robot as a client of Foxglove's WebSocket protocol sees them
(github.com/foxglove/ws-protocol, docs/spec.md): held against what the robot's own client gets, against
/metrics and `tectum top`; unsubscribing, clients that break the rules, one that stalls."""

import asyncio
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

from serve_client import Refused, Socket
from serve_harness import BOX, OBSERVATION, PROGRAM, SLOW, Server, check, main, test

DEMO = "pipelines/demo_metaworld.lua"
MOST_KEPT = 1 << 20  # more bytes than wait for a client: TEC_FOXGLOVE_OUT, and what two sockets hold
BOTH = "foxglove.sdk.v1, foxglove.websocket.v1"
FIXED = {"frames": "tectum.Frame", "deadlines": "tectum.Deadline", "kv": "tectum.Kv", "counters": "tectum.Counters",
         "log": "foxglove.Log"}


class Viewed(Server):
    """A server with a page; its own client asks with `infer`."""

    def __init__(self, *options):
        self.control = os.path.join(BOX, "control%d" % time.monotonic_ns())
        super().__init__(DEMO, "--view", "0", "--control", self.control, "--late-ok", *options)
        line = ""
        while "/view" not in line:
            line = self.p.stderr.readline()
            check(line, "the page's address is said")
        self.view = int(re.search(r"ws://127\.0\.0\.1:(\d+)", line).group(1))
        self.robot = self.connect()

    def infer(self, n=1):
        return [self.robot.infer(OBSERVATION) for _ in range(n)]

    def metrics(self):
        text = urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.port).read().decode()
        return {k: float(v) for k, v in re.findall(r"^tectum_(\S+) (\S+)$", text, re.M)}


class Looker(Socket):
    """A client; `topics` [topic] -> id of its channel."""

    def __init__(self, port, protocols=BOTH, headers="", receives=None):
        if protocols:
            headers += "Sec-WebSocket-Protocol: %s\r\n" % protocols
        super().__init__(port, headers=headers, host="127.0.0.1:%d" % port, timeout=20 * SLOW)
        if receives:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        self.bytes = 0
        self.info = self.json()
        self.channels = self.json()["channels"]
        self.topics = {c["topic"]: c["id"] for c in self.channels}
        self.subscribed = {}

    def json(self):
        opcode, text = self.message()
        check(opcode == 1, opcode, text[:200])
        return json.loads(text)

    def op(self, op, **fields):
        self.frame(1, json.dumps({"op": op, **fields}).encode())

    def subscribe(self, *topics):
        asked = [{"id": 100 + self.topics["/tectum/" + t], "channelId": self.topics["/tectum/" + t]} for t in topics]
        self.subscribed.update({a["id"]: t for a, t in zip(asked, topics)})
        self.op("subscribe", subscriptions=asked)
        self.settle()

    def settle(self):
        """What was sent counts when this returns: messages are answered in their order."""
        self.frame(9, b"settle")
        while self.read() != (10, b"settle"):
            continue

    def told(self, timeout=20):
        """The next message of a channel: its name, time and content; or ("status", level, words)."""
        self.s.settimeout(timeout * SLOW)
        opcode, data = self.message()
        self.bytes += len(data)
        if opcode == 1:
            status = json.loads(data)
            check(status["op"] == "status", status)
            return "status", status["level"], status["message"]
        check(opcode == 2 and data[0] == 1, opcode, data[:40])
        subscription, t = struct.unpack("<IQ", data[1:13])
        return self.subscribed[subscription], t, json.loads(data[13:])

    def until(self, enough):
        """Messages, by channel, until this is true of them."""
        got, end = {}, time.monotonic() + 30 * SLOW
        while not enough(got):
            check(time.monotonic() < end, {k: (len(v), v[-1][1]) for k, v in got.items()})
            name, t, value = self.told()
            got.setdefault(name, []).append((t, value))
        return got

    def refusal(self):
        """The level and words of the status that comes next."""
        name, level, words = self.told()
        check(name == "status", name)
        return level, words


def count(got, name):
    return len(got.get(name, []))


def values(got, name):
    return [value for _, value in got.get(name, [])]


def since_looked(got):
    """Deadlines of chunks that came. A frame that had still to end when somebody looked is told, its chunk had left."""
    return [d for d in values(got, "deadlines") if d["frame"] >= values(got, "actions/act")[0]["frame"]]


@test
def live_values_are_what_the_robot_did():
    server = Viewed()
    server.infer(3)  # before anybody looks: it is not told
    while server.metrics()["in_flight_requests"] or server.metrics()["frames_total"] < 3:
        time.sleep(0.05)  # a frame ends behind its reply, its text before it
    look = Looker(server.view)
    check(look.info["op"] == "serverInfo" and look.info["capabilities"] == [] and
          look.info["name"] == "demo_metaworld", look.info)
    names = {**{"/tectum/" + k: v for k, v in FIXED.items()}, "/tectum/actions/act": "tectum.Actions",
             "/tectum/text/talk": "tectum.Text"}
    check({c["topic"]: c["schemaName"] for c in look.channels} == names, look.channels)
    for c in look.channels:
        check(c["encoding"] == "json" and c["schemaEncoding"] == "jsonschema")
        check(json.loads(c["schema"])["type"] == "object", c)
    look.subscribe(*FIXED, "actions/act", "text/talk")
    began = time.time_ns()
    replies = server.infer(12)
    while server.metrics()["in_flight_requests"]:
        time.sleep(0.05)
    finished = server.metrics()['texts_total{state="finished"}']
    got = look.until(lambda got: count(got, "actions/act") >= 12 and count(got, "counters") and values(got, "frames") and
                     sum(x["done"] for x in values(got, "text/talk")) >= min(finished, 3) and
                     len(since_looked(got)) >= 12 and
                     values(got, "frames")[-1]["frame"] + 1 == values(got, "counters")[-1]["frames"] and
                     values(got, "counters")[-1]["frames"] == server.metrics()["frames_total"])  # the last one has run
    metrics = server.metrics()
    total = metrics["frames_total"]
    chunks = values(got, "actions/act")
    check(len(chunks) == 12 and all(c["units"] == "robot" for c in chunks), len(chunks))
    for chunk, reply in zip(chunks, replies):
        rows, columns = reply["actions"].shape
        code = {"<f8": "d", "<f4": "f"}[reply["actions"].dtype]
        sent = struct.unpack("<%d%s" % (rows * columns, code), reply["actions"].data)
        seen = [x for row in chunk["rows"] for x in row["values"]]
        check(len(seen) == len(sent) and all(abs(a - b) <= 1e-6 for a, b in zip(seen, sent)), seen, sent)
        check(chunk["first"] == chunk["rows"][0]["values"])
    frames = values(got, "frames")
    check([f["frame"] for f in frames] == list(range(frames[0]["frame"], int(total))), [f["frame"] for f in frames])
    check(all(began < t < time.time_ns() for t, _ in got["frames"] + got["actions/act"]))
    check(all(("words" in f) == f["missed"] and f["took_ms"] > 0 for f in frames), frames)
    counters = values(got, "counters")[-1]
    same = {"frames": "frames_total", "tokens": "tokens_generated_total", "in_flight": "in_flight_requests",
            "snapped": "snapped_decisions_total", "actions_left_out": "left_out_actions_total", "slots": "slots",
            "kv_bytes": "kv_bytes", "batch": "batch_size"}
    check({k: counters[k] for k in same} == {k: metrics[v] for k, v in same.items()}, counters, metrics)
    for state in ("arrived", "admitted", "refused", "finished", "shed", "cancelled"):
        check(counters["texts_" + state] == metrics['texts_total{state="%s"}' % state], state, counters)
    for cause, n in counters["missed"].items():
        check(n == metrics['frame_misses_total{cause="%s"}' % cause], cause, n)
    top = json.loads(subprocess.run([PROGRAM, "top", "--control", server.control, "--count", "1", "--window-s",
                                     "100", "--format", "json"],
                                    capture_output=True, text=True).stdout.splitlines()[-1])
    check(top["missed"] == counters["frames_missed"] and top["frames"] == total, top, counters)
    missed = [f for f in frames if f["missed"]]
    logged = [v for v in values(got, "log") if v["level"] == 3]
    check([v["message"] for v in logged] == [f["words"] for f in missed], logged, missed)
    late = since_looked(got)
    check(len(values(got, "deadlines")) - len(late) <= 1, values(got, "deadlines"))
    check([d["frame"] for d in late] == [c["frame"] for c in chunks] and {d["node"] for d in late} == {"act"}, late)
    check([d["late"] for d in late] == [c["late"] for c in chunks])
    check({"alloc", "fork"} <= {k["operation"] for k in values(got, "kv")}, values(got, "kv")[:4])
    server.end()


def huge_weights():
    """A copy of the demo's weights with an action head whose products overflow."""
    folder = os.path.join(BOX, "huge")
    if os.path.isdir(folder):
        return folder
    shutil.copytree("pipelines/checkpoints/metaworld", folder)
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])["action_out_proj.weight"]["data_offsets"]
    data[8 + size + begin:8 + size + end] = b"\x7f\x7f" * ((end - begin) // 2)  # 3.4e38 in bf16
    with open(path, "wb") as f:
        f.write(data)
    return folder


@test
def numbers_that_are_not_finite_are_no_actions():
    server = Viewed("--weights", huge_weights())
    look = Looker(server.view)
    look.subscribe("actions/act")
    server.robot.send(OBSERVATION)
    check("not finite" in str(server.robot.failure()[0]))
    got = look.until(lambda got: count(got, "actions/act"))
    chunk = values(got, "actions/act")[0]
    check(chunk["units"] == "robot" and chunk["rows"] == [] and "first" not in chunk, chunk)
    server.end()


@test
def texts_come_as_they_are_said():
    server = Viewed()
    look = Looker(server.view)
    look.subscribe("text/talk", "log")
    server.infer(6)
    got = look.until(lambda got: sum(x["done"] for x in values(got, "text/talk")) >= 3)
    said = {}
    for x in values(got, "text/talk"):
        said[x["request"]] = said.get(x["request"], "") + x["text"]
        check(x["said"] == said[x["request"]], x, said)
        check(("reason" in x) == x["done"], x)
    ended = [x["said"] for x in values(got, "text/talk") if x["done"]]
    check(all(ended), ended)
    got = look.until(lambda more: [v["message"] for v in values(got, "log") + values(more, "log") if v["level"] == 2]
                     [:3] == ended[:3]) if count(got, "log") < 3 else got
    server.end()


@test
def what_was_said_before_anybody_looked_is_not_told():
    server = Viewed()
    server.infer(800)  # more than waits for whoever looks
    while server.metrics()["in_flight_requests"]:
        time.sleep(0.05)
    look = Looker(server.view)
    look.subscribe("text/talk", "frames")
    server.infer(1)
    got = look.until(lambda got: count(got, "frames") and sum(x["done"] for x in values(got, "text/talk")))
    check(all((x["said"] or x.get("reason") == "deadline") and not x["lost"] for x in values(got, "text/talk")),
          values(got, "text/talk"))  # a slow machine may leave it no time for a word
    server.end()


@test
def parts_of_messages_are_not_without_end():
    server = Viewed()
    look = Looker(server.view)
    parts = b"".join(look.bytes_of(1 if i == 0 else 0, b"", final=False) for i in range(1000))
    try:
        for _ in range(2000):
            look.s.sendall(parts if _ == 0 else parts[6:])
        check(False, "no end to what one may send")
    except OSError:
        pass
    server.end()


@test
def what_is_unsubscribed_does_not_come():
    server = Viewed()
    look = Looker(server.view)
    look.subscribe("frames", "deadlines")
    server.infer(2)
    look.until(lambda got: count(got, "frames") >= 2 and count(got, "deadlines") >= 2)
    look.op("unsubscribe", subscriptionIds=[100 + look.topics["/tectum/frames"]])
    look.settle()
    server.infer(3)
    got = look.until(lambda got: count(got, "deadlines") >= 3)
    check(set(got) == {"deadlines"}, set(got))
    look.subscribe("frames")  # the id is free again
    server.infer(2)
    got = look.until(lambda got: count(got, "frames") >= 2)
    server.end()


@test
def who_breaks_the_rules_is_told():
    server = Viewed()
    look = Looker(server.view)
    act = look.topics["/tectum/actions/act"]
    asked = [("advertise", {"channels": []}, 2), ("unadvertise", {"channelIds": []}, 2), ("getParameters", {}, 2),
             ("setParameters", {"parameters": [{"name": "k", "value": 4}]}, 2), ("fetchAsset", {"uri": "file:///etc"}, 2),
             ("subscribeConnectionGraph", {}, 2), ("dance", {}, 1), ("subscribe", {}, 2),
             ("subscribe", {"subscriptions": {"id": 1}}, 2),
             ("subscribe", {"subscriptions": [{"id": 1, "channelId": i} for i in range(300)]}, 2),
             ("unsubscribe", {"subscriptionIds": [7]}, 1), ("unsubscribe", {"subscriptionIds": [None]}, 1)]
    bad = [None, 1, "x", {}, {"id": 1}, {"channelId": act}, {"id": -1, "channelId": act}, {"id": 1, "channelId": 0},
           {"id": 1 << 32, "channelId": act}, {"id": 1, "channelId": 10 ** 18}, {"id": 1.5, "channelId": act},
           {"id": 1, "channelId": act + 1}]
    asked += [("subscribe", {"subscriptions": [b]}, 2) for b in bad]
    for op, fields, level in asked:
        look.op(op, **fields)
        got = look.refusal()
        check(got[0] == level, op, fields, got)
    for text in (b"", b"{", b"[]", b"3", b'{"op":"a","op":"b"}', b"\xff\xfe", b'{"op":3}', b"[" * 5000):
        look.frame(1, text)
        check(look.refusal()[0] in (1, 2), text[:20])
    look.frame(2, b"\x01\x01\x00\x00\x00{}")
    check("change nothing" in look.refusal()[1])
    look.op("subscribe", subscriptions=[{"id": 1, "channelId": act}])
    look.op("subscribe", subscriptions=[{"id": 2, "channelId": act}])  # a channel twice
    check(look.refusal()[0] == 1)
    look.op("subscribe", subscriptions=[{"id": 1, "channelId": 1}])  # an id twice
    check(look.refusal()[0] == 1)
    half = json.dumps({"op": "unsubscribe", "subscriptionIds": [1]}).encode()
    look.frame(1, half[:9], final=False)  # in two frames, with a ping between them
    look.frame(9, b"still there")
    check(look.read() == (10, b"still there"))
    look.frame(0, half[9:])
    look.op("unsubscribe", subscriptionIds=[1])
    check(look.refusal()[0] == 1)  # so the first one had been done
    breaks = [(1002, dict(opcode=3, data=b"")), (1002, dict(opcode=0, data=b"rest of nothing")),
              (None, dict(opcode=9, data=b"x" * 126)),  # libwebsockets closes without a word
              (1002, dict(opcode=9, data=b"", final=False)), (1009, dict(opcode=1, data=b" " * 65537)),
              (1009, dict(opcode=1, data=b"{", claim=1 << 62)), (1002, dict(opcode=0x41, data=b"{}"))]
    for code, frame in breaks:
        other = Looker(server.view)
        other.frame(**frame)
        try:
            check(other.failure()[1] == code, code, frame["opcode"])
        except (EOFError, ConnectionError):
            check(code is None, code, frame["opcode"])
        other.close()
    other = Looker(server.view)
    other.frame(1, b"{}", masked=False)  # against RFC 6455: the library takes it (doc/serve.md)
    check(other.refusal()[0] == 1)
    other = Looker(server.view)
    for _ in range(3):  # longer than a message may be, in frames that are not
        other.frame(1 if _ == 0 else 0, b" " * 30000, final=False)
    check(other.failure()[1] == 1009)
    other = Looker(server.view)
    try:
        other.s.sendall(b"".join(other.bytes_of(1, b'{"op":"dance"}') for _ in range(300)))
        while True:
            opcode, data = other.message()
            check(opcode == 1 or data == struct.pack(">H", 1008), data)
    except (ConnectionError, EOFError):  # it is closed, and what else it has sent is not read
        pass
    other = Looker(server.view)
    other.frame(8, struct.pack(">H", 1000))
    check(other.read() == (8, struct.pack(">H", 1000)))
    look.subscribe("frames")  # the first one has noticed nothing
    server.infer(2)
    look.until(lambda got: count(got, "frames") >= 2)
    server.end()


def when_free(server):
    """A client, as soon as the server has noticed that one before has left."""
    end = time.monotonic() + 20 * SLOW
    while True:
        try:
            return Looker(server.view)
        except Refused:
            check(time.monotonic() < end, "no place becomes free")


@test
def handshakes_are_judged():
    server = Viewed("--view-origin", "https://app.example.com")

    def refused(*given, **named):
        try:
            Looker(server.view, *given, **named).close()
        except Refused as e:
            return str(e).split(" ")[1]
        return None

    check(refused(None) == "400" and refused("chat, foxglove.websocket.v2") == "400")
    for origin, code in (("https://evil.example", "400"), ("http://localhost.evil.example", "400"), ("null", "400"),
                         ("https://app.example.com.evil.example", "400"), ("https://app.example.com", None),
                         ("http://localhost:8080", None), ("http://127.0.0.1", None), ("file://", None)):
        check(refused(headers="Origin: %s\r\n" % origin) == code, origin, code)
    for protocols in ("foxglove.websocket.v1", "foxglove.sdk.v1", BOTH):
        look = Looker(server.view, protocols)
        check(("Protocol: %s\r\n" % protocols.split(",")[0]).encode() in look.head + b"\r\n", look.head)
        look.close()
    with_host = dict(headers="Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n")
    try:
        Socket(server.view, host="evil.example", **with_host)
        check(False, "a name of another machine")
    except Refused as e:
        check(" 403 " in str(e), e)
    places = [when_free(server) for _ in range(8)]
    try:
        Looker(server.view)
        check(False, "a ninth client")
    except Refused as e:
        check(" 503 " in str(e), e)
    places.pop().close()
    when_free(server)
    check(subprocess.run([PROGRAM, "run", DEMO, "--view-origin", "x"], capture_output=True).returncode == 2)
    server.end()


@test
def one_that_looks_at_nothing_gives_its_place_to_another():
    server = Viewed()
    looks = Looker(server.view)
    looks.subscribe("frames")
    idle = [Looker(server.view) for _ in range(7)]
    end = time.monotonic() + 11  # TEC_FOXGLOVE_IDLE_S, and a bit
    while time.monotonic() < end:
        idle[3].op("unsubscribe", subscriptionIds=[])  # it says something
        time.sleep(0.5)
    another = when_free(server)
    check(idle[0].failure()[1] == 1008)
    another.subscribe("frames")
    server.infer()
    for one in (looks, another):
        one.until(lambda got: count(got, "frames") > 0)
    idle[3].settle()
    server.end()


@test
def pings_without_end_take_a_quarter_of_a_processor():
    server = Viewed()
    look, floods = Looker(server.view), [Looker(server.view) for _ in range(3)]
    look.subscribe("frames")
    pings, ended = floods[0].bytes_of(9, b"x") * 2000, threading.Event()

    def send(one):
        try:
            while not ended.is_set():
                one.s.sendall(pings)
        except OSError:
            pass

    def take(one):
        try:
            while one.s.recv(1 << 16):
                pass
        except OSError:
            pass

    threads = [threading.Thread(target=what, args=(one,)) for one in floods for what in (send, take)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    used, began = server.cpu_s(), time.monotonic()
    time.sleep(4)
    share = (server.cpu_s() - used) / (time.monotonic() - began)
    server.infer()
    look.until(lambda got: count(got, "frames") > 0)
    ended.set()
    for one in floods:
        one.s.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    print("# a server that is flooded with pings takes %.0f %% of a processor" % (100 * share))
    check(share < 0.45, share)
    server.end()


@test
def one_that_stalls_loses_messages_and_others_none():
    server = Viewed()
    stalls, looks = Looker(server.view, receives=65536), Looker(server.view)
    for one in (stalls, looks):
        one.subscribe("actions/act", "frames", "deadlines", "kv", "text/talk")
    seen = []
    while looks.bytes < MOST_KEPT:  # until more has come than can lie before the one that stalls
        server.infer(20)
        got = looks.until(lambda got: count(got, "actions/act") >= 20)
        seen += [f["frame"] for f in values(got, "frames")]
    check(seen == list(range(seen[0], seen[0] + len(seen))), "the one that reads has missed some")
    told = None
    while told is None:
        name, t, value = stalls.told()
        if name == "status":
            told = value
    check(re.match(r"\d+ messages were left out", told), told)
    server.infer(3)
    newest = stalls.until(lambda got: values(got, "frames") and values(got, "frames")[-1]["frame"] > seen[-1])
    check(newest)
    server.end()


@test
def the_package_websockets_connects():
    try:
        import websockets
    except ImportError:
        return "websockets is not there (sh tools/setup.sh --test)"
    server = Viewed()

    async def look():
        async with websockets.connect("ws://localhost:%d" % server.view, subprotocols=["foxglove.websocket.v1"]) as ws:
            check(ws.subprotocol == "foxglove.websocket.v1")
            check(json.loads(await ws.recv())["op"] == "serverInfo")
            channels = {c["topic"]: c["id"] for c in json.loads(await ws.recv())["channels"]}
            await ws.send(json.dumps({"op": "subscribe", "subscriptions":
                                      [{"id": 4, "channelId": channels["/tectum/actions/act"]}]}))
            await (await ws.ping())
            await asyncio.get_running_loop().run_in_executor(None, server.infer, 1)
            data = await ws.recv()
            check(data[:5] == b"\x01\x04\0\0\0" and json.loads(data[13:])["rows"])
    asyncio.run(look())
    server.end()


@test
def a_server_that_ends_says_so():
    server = Viewed()
    look = Looker(server.view)
    look.subscribe("frames")
    server.infer(1)
    server.end()
    while True:
        opcode, data = look.message()
        if opcode == 8:
            break
    check(struct.unpack(">H", data[:2])[0] == 1001, data)


def running(*options):
    """A paced run, and a client that looks at its actions and frames."""
    p = subprocess.Popen([PROGRAM, "run", DEMO, "--random-inputs", "3", "--clock", "paced", "--frames", "60",
                          "--set", "frame.period_ms=100", "--view", "0", "--format", "json", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = ""
    while "ws://127.0.0.1:" not in line:
        line = p.stderr.readline()
        check(line, "the address is said")
    look = Looker(int(re.search(r"ws://127\.0\.0\.1:(\d+)", line).group(1)))
    look.subscribe("actions/act", "frames")
    return p, look


@test
def frames_of_run_are_shown_too():
    p, look = running()
    got = look.until(lambda got: count(got, "frames") >= 5 and count(got, "actions/act") >= 5)
    check({c["units"] for c in values(got, "actions/act")} == {"model"})  # whoever takes rows makes them the robot's
    out, err = p.communicate(timeout=60 * SLOW)
    check(p.returncode == 0 and len(out.splitlines()) == 60, p.returncode, err)


@test
def numbers_that_are_not_finite_keep_their_places():
    p, look = running("--weights", huge_weights())
    got = look.until(lambda got: count(got, "actions/act"))
    p.kill()
    p.communicate()
    rows = [row["values"] for row in values(got, "actions/act")[0]["rows"]]
    check(len({len(row) for row in rows}) == 1 and any(None in row for row in rows), rows)


sys.exit(main())
