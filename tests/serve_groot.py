"""serve_groot.py - GR00T's protocol beside openpi's, TAP.  python3 tests/serve_groot.py PROGRAM [--times]

Clients as Isaac-GR00T has them, of N1.5 (flat keys), N1.6 (maps by modality) and N1.7 (arrays as msgpack-numpy packs
them), are answered with the numbers that openpi's clients get; what is wrong is refused with a sentence, and hostile
messages disturb nobody.
"""

import io
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

import msgpack
import numpy as np
import zmq

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_client import Array  # noqa: E402
from serve_harness import SLOW, STATES, check, key_file, main, openpi_in_turn, special, test, told_apart, variant  # noqa: E402

KEY = "a-key-of-24-characters.."
DRAW = np.random.default_rng(7)
VIDEO = {"cam%d" % i: DRAW.integers(0, 256, (64, 64, 3), dtype=np.uint8) for i in range(2)}
STATE = {"arm": np.array([0.0, 0.6, 0.2], np.float32), "gripper": np.array([1.0], np.float32)}
TASK = "press the button"
DEMO = {"observation/image": np.zeros((1, 64, 64, 3), np.uint8), "observation/wrist_image": np.zeros((1, 64, 64, 3), np.uint8),
        "observation/state": np.array([[0.0, 0.6, 0.2, 1.0]], np.float32), "prompt": ["press the button"]}


class Server(serve_harness.Server):
    def __init__(self, *options, pipeline="pipelines/demo_metaworld.lua"):
        super().__init__(pipeline, "--groot-port", "0", "--late-ok", *options)
        self.groot_port = int(self.line.split("tcp://")[1].split()[0].split(":")[-1])


def by_modality():
    """The demo, with a robot whose inputs are called as GR00T calls them and whose action has parts."""
    names = {"observation/image": "video.cam0", "observation/wrist_image": "video.cam1", '"prompt"': '"annotation.task"'}
    pipeline, robot = open("pipelines/demo_metaworld.lua").read(), open("pipelines/robots/metaworld.lua").read()
    for old, new in names.items():
        pipeline, robot = pipeline.replace(old, new), robot.replace(old, new)
    pipeline = pipeline.replace('tensor { name = "observation/state", shape = { 4 } }',
                                'tensor { name = "state.arm", shape = { 3 } }, tensor { name = "state.gripper", shape = { 1 } }')
    pipeline = pipeline.replace('"observation/state"', '"state.arm", "state.gripper"').replace("robots/metaworld.lua", "robots/parts.lua")
    robot = robot.replace('{ { input = "observation/state", size = 4 } }',
                          '{ { input = "state.arm", size = 3 }, { input = "state.gripper", size = 1 } }')
    robot = robot.replace("relative = true", 'relative = true, outputs = { { name = "arm", size = 3 }, { name = "gripper", size = 1 } }')
    robot = robot.replace("prompt  = {", 'prompt  = { input = "annotation.task",')
    path = variant("by_modality", pipeline)
    with open(os.path.join(os.path.dirname(path), "robots", "parts.lua"), "w") as f:
        f.write(robot)
    return Server("--root", ".", pipeline=path)


def many_robots():
    return Server("--set", "frame.sessions=2", "--set", "capture.sessions=[1,2]", pipeline="pipelines/graphs/g24_many_robots.lua")


def slow_frames(*options):
    """Frames of a tenth of a second and more."""
    return Server("--set", "nodes.act.steps=%d" % (1000 / max(1, SLOW / 3)), "--max-connections", "3", *options)


def chunk(client, who=None):
    state = {"observation/state": np.array([STATES[who]], np.float32)} if who else {}
    return client.ask("get_action", {**DEMO, **state})["action.actions"].tobytes()


def in_turn(server, order):
    """Chunks of robots with a connection each."""
    clients = {who: Client(server) for who in order}
    return [chunk(clients[who], who) for who in order]


def as_float32(chunks):
    return [np.frombuffer(c, "<f8").astype(np.float32).tobytes() for c in chunks]


def as_npy(a):
    if isinstance(a, np.ndarray):
        out = io.BytesIO()
        np.save(out, a, allow_pickle=False)
        return {"__ndarray_class__": True, "as_npy": out.getvalue()}
    raise TypeError(type(a))


def as_packed(a):
    if isinstance(a, np.ndarray):
        return {b"nd": True, b"type": a.dtype.str, b"kind": b"", b"shape": a.shape, b"data": a.tobytes()}
    raise TypeError(type(a))


def unpacked(d):
    if "as_npy" in d:
        return np.load(io.BytesIO(d["as_npy"]), allow_pickle=False)
    if b"nd" in d:
        return np.frombuffer(d[b"data"], np.dtype(d[b"type"])).reshape(d[b"shape"])
    return d


class Client:
    def __init__(self, server, encode=as_npy, token=None, host="127.0.0.1"):
        self.encode, self.token = encode, token
        self.socket = zmq.Context.instance().socket(zmq.REQ)
        self.socket.linger = 0
        self.socket.rcvtimeo = int(20000 * SLOW)
        self.socket.ipv6 = host[0] == "["
        self.socket.connect("tcp://%s:%d" % (host, server.groot_port))

    def ask(self, endpoint, data=None):
        request = {"endpoint": endpoint}
        if data is not None:
            request["data"] = data
        if self.token:
            request["api_token"] = self.token
        return self.raw(msgpack.packb(request, default=self.encode))

    def raw(self, message):
        self.socket.send(message)
        return msgpack.unpackb(self.socket.recv(), object_hook=unpacked, strict_map_key=False)

    def close(self):
        self.socket.close()


def flat(lead=1):
    lead = (1,) * lead
    return {**{"video." + k: v.reshape(lead + v.shape) for k, v in VIDEO.items()},
            **{"state." + k: v.reshape(lead + v.shape) for k, v in STATE.items()},
            "annotation.task": [TASK]}


def nested():
    return {"observation": {"video": {k: v[None, None] for k, v in VIDEO.items()},
                            "state": {k: v[None, None] for k, v in STATE.items()},
                            "language": {"annotation.task": [[TASK]]}}, "options": None}


def openpi(n=2):
    """What openpi's client gets of a server of its own, by part of the action, float32."""
    server = by_modality()
    s = server.connect()
    obs = {**{"video." + k: Array("|u1", v.shape, v.tobytes()) for k, v in VIDEO.items()},
           **{"state." + k: Array("<f4", v.shape, v.tobytes()) for k, v in STATE.items()}}
    got = []
    for _ in range(n):
        a = s.infer({**obs, "annotation.task": TASK})["actions"]
        rows = np.frombuffer(a.data, "<f8").reshape(a.shape).astype(np.float32)
        got.append({"arm": rows[:, :3], "gripper": rows[:, 3:]})
    server.end()
    return got


def same(a, b):
    return a.dtype == np.float32 and a.shape == b.shape and a.tobytes() == b.tobytes()


@test
def clients_of_n15_get_openpis_numbers():
    server = by_modality()
    c = Client(server)
    check(c.ask("ping") == {"status": "ok", "message": "Server is running"})
    expected = openpi()
    for one in expected:
        got = c.ask("get_action", flat())
        check(list(got) == ["action.arm", "action.gripper"], got)
        check(all(same(got["action." + k], one[k]) for k in one))
    code, _, err = server.end()
    check(code == 0 and "2 requests, 0 errors" in err, err)


@test
def clients_of_n16_and_n17_get_them_by_batch():
    expected = openpi(1)[0]
    for encode in (as_npy, as_packed):
        server = by_modality()
        action, info = Client(server, encode).ask("get_action", nested())
        check(all(same(action[k], expected[k][None]) for k in expected), action)
        check(info == {"source": "fresh", "missed": False}, info)
        server.end()
    server = by_modality()
    got = Client(server, as_packed).ask("get_action", flat(2))
    check(all(same(got["action." + k], expected[k]) for k in expected))


@test
def the_modalities_are_the_robots():
    server = by_modality()
    got = Client(server).ask("get_modality_config")
    config = {k: json.loads(v["as_json"]) for k, v in got.items() if v["__ModalityConfig_class__"]}
    check(config["video"] == {"delta_indices": [0], "modality_keys": ["video.cam0", "video.cam1"]}, config)
    check(config["state"]["modality_keys"] == ["state." + k for k in STATE], config)
    check(config["language"]["modality_keys"] == ["annotation.task"], config)
    check(config["action"]["modality_keys"] == ["action.arm", "action.gripper"], config)
    rows = len(Client(server).ask("get_action", flat())["action.arm"])
    check(config["action"]["delta_indices"] == list(range(rows)), config, rows)


@test
def any_pipeline_with_a_robot_is_served():
    server = Server()
    got = Client(server).ask("get_action", DEMO)
    check(list(got) == ["action.actions"] and got["action.actions"].shape == (16, 4), got)
    by_slot = {"video.image": DEMO["observation/image"], "video.wrist_image": DEMO["observation/wrist_image"],
               "state.state": DEMO["observation/state"], "annotation.human.action.task_description": ["press the button"]}
    again = Server()
    check(same(Client(again).ask("get_action", by_slot)["action.actions"], got["action.actions"]))


@test
def a_reset_makes_another_client_of_it():
    """The robot that resets begins anew, in a session that nobody else has, however old another's is."""
    alone = many_robots()
    c = Client(alone)
    draws = [chunk(c) for _ in range(5)]  # of a session's noise, one after another
    check(len(set(draws)) == 5)
    server = many_robots()
    other, c = Client(server), Client(server)
    check([chunk(other) for _ in range(3)] == draws[:3])
    check(chunk(c) == draws[0])
    for options in ({"options": None}, None):
        check(c.ask("reset", options) == {})
    check(chunk(c) == draws[1])  # of its own session; the other's, which is older, would give draws[3]
    check(chunk(other) == draws[3])
    check(server.end()[0] == 0)


@test
def a_reset_forgets_the_last_command():
    path = special("robot.actions.limits = { max_step = 0.05 }")
    reset, one, two = (Server("--root", ".", pipeline=path) for _ in range(3))
    c = Client(reset)
    got = [chunk(c, "left")]
    c.ask("reset")
    got.append(chunk(c, "right"))
    check(got == as_float32(openpi_in_turn(one, ["left", "right"])))
    check(got != as_float32(openpi_in_turn(two, ["left", "right"], shared=True)))


@test
def what_the_server_knows_of_a_robot_is_its_own():
    told_apart(Server, in_turn, as_float32)


@test
def a_stop_is_an_error():
    """An empty chunk would be carried out; an error is not."""
    server = Server("--root", ".", pipeline=special('robot.actions.limits = { max = 0.001, on = "stop" }'))
    got = Client(server).ask("get_action", DEMO)
    check(set(got) == {"error"} and "no actions" in got["error"] and "stopped" in got["error"], got)


@test
def what_is_wrong_is_refused_with_a_sentence():
    server = Server()
    c = Client(server)

    def refused(got, *words):
        check(set(got) == {"error"} and all(w in got["error"] for w in words), got)
    refused(c.ask("kill"), "kill", "no endpoint")
    refused(c.ask("get_action"), "no data")
    refused(c.ask("get_action", 3), "data", "map")
    two = np.zeros((2, 64, 64, 3), np.uint8)
    for change, *words in (({"observation/image": two}, "observation/image", "one observation"),
                           ({"observation/image": None}, "observation/image", "expected"),
                           ({"observation/image": {"as_npy": b"x"}}, "observation/image", "NumPy"),
                           ({"observation/image": {"as_npy": as_npy(two)["as_npy"][:100]}}, "observation/image"),
                           ({"observation/image": np.zeros((1, 3, 3), np.uint8)}, "observation/image"),
                           ({"observation/image": np.asfortranarray(np.zeros((64, 64, 3), np.uint8))}, "column-major"),
                           ({"observation/state": np.zeros((1, 5), np.float32)}, "observation/state"),
                           ({"prompt": ["a", "b"]}, "prompt", "one text"), ({"prompt": 7}, "prompt"),
                           ({"video.image": DEMO["observation/image"]}, "twice")):
        refused(c.ask("get_action", {**DEMO, **change}), *words)
    refused(c.ask("get_action", {"observation": {"smell": {}}}), "modalities")
    refused(c.ask("get_action", {"observation": {"video": 3}}), "modality")
    refused(c.raw(b""), "ends")
    refused(c.raw(b"\x83"), "ends")
    refused(c.raw(msgpack.packb([1, 2])), "map")
    check(c.ask("get_action", DEMO)["action.actions"].shape == (16, 4))
    check(server.end()[0] == 0)


@test
def anything_at_all_is_answered():
    server = Server("--max-message-mib", "1")
    c, draw = Client(server), random.Random(3)
    whole = msgpack.packb({"endpoint": "get_action", "data": DEMO}, default=as_npy)
    for _ in range(300):
        message = bytearray(whole if draw.random() < 0.5 else whole[:draw.randrange(1, 400)])
        for _ in range(draw.randrange(1, 5)):
            message[draw.randrange(min(len(message), 300))] = draw.randrange(256)
        socket_answer(c, bytes(message))
    check(c.ask("get_action", DEMO)["action.actions"].shape == (16, 4))
    check(server.end()[0] == 0)


def socket_answer(c, message):
    c.socket.send(message)
    got = msgpack.unpackb(c.socket.recv(), strict_map_key=False)
    check(isinstance(got, (dict, list)), got)


@test
def a_key_is_asked_for():
    server = Server("--key", key_file(KEY))
    for token in (None, KEY[:-1], "", "x" * 5000):
        check("key" in Client(server, token=token).ask("ping")["error"])
    check(Client(server, token=KEY).ask("get_action", DEMO)["action.actions"].shape == (16, 4))


@test
def robots_are_answered_side_by_side():
    """Each with the numbers that it has alone, of a pipeline with two sessions."""
    def served(clients, rounds=3):
        server, got = many_robots(), {}

        def robot(i):
            c = Client(server)
            got[i] = [chunk(c) for _ in range(rounds)]
        threads = [threading.Thread(target=robot, args=(i,)) for i in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        server.end()
        return got
    alone, both = served(1), served(2)
    check(both[0] == both[1] == alone[0] and len(set(alone[0])) == 3)


def shake_hands(server, kind=b"REQ", mechanism=b"NULL", wait=5.0):
    """A connection of ZeroMQ's by hand, and whether the server has agreed."""
    s = socket.create_connection(("127.0.0.1", server.groot_port), timeout=wait * SLOW)
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind + b"\x08Identity" + bytes(4)
    s.sendall(greeting + b"\x04" + bytes([len(ready)]) + ready)
    return s


def take(s, n):
    out = b""
    while len(out) < n:
        got = s.recv(n - len(out))
        if not got:
            return out
        out += got
    return out


def ended(s, data=b""):
    """The server closes it, if not before then behind these bytes."""
    try:
        s.sendall(data)
        while s.recv(1 << 16):
            pass
        return True
    except socket.timeout:
        return False
    except OSError:
        return True


def frame(data, flags=0):
    return bytes([flags | 2]) + struct.pack(">Q", len(data)) + data


def resident(server):
    return next(int(x.split()[1]) for x in open("/proc/%d/status" % server.p.pid) if x.startswith("VmRSS")) / 1024


PING = msgpack.packb({"endpoint": "ping"})


@test
def what_is_no_request_ends_its_connection():
    server = Server("--max-message-mib", "1")
    s = shake_hands(server)
    s.sendall(frame(b"\x04PING\0\0ctx", 4) + frame(b"\x04SOME", 4) + frame(b"", 1) + frame(PING))
    head = take(s, 64 + 27)
    check(take(s, 10) == b"\x04\x08\x04PONGctx")
    got = head + take(s, 2 + 2)
    check(got[:12] == b"\xff" + bytes(8) + b"\x7f\x03\x00" and b"READY" in got and got[-4:-2] == b"\x01\x00", got)
    check(msgpack.unpackb(take(s, got[-1]))["status"] == "ok")
    for data in (b"GET / HTTP/1.1\r\n\r\n" + bytes(60), b"\xff" + bytes(8) + b"\x7f\x01" + bytes(60)):
        check(ended(socket.create_connection(("127.0.0.1", server.groot_port), timeout=5 * SLOW), data), data)
    for kind, mechanism in ((b"SUB", b"NULL"), (b"ROUTER", b"NULL"), (b"RE", b"NULL"), (b"REQ", b"PLAIN"), (b"REQ", b"CURVE")):
        check(ended(shake_hands(server, kind, mechanism)), kind, mechanism)
    for data in (frame(PING), frame(b"x", 1) + frame(PING), frame(b"", 1) + frame(PING, 1), frame(b"", 1) + frame(b"", 1),
                 frame(b"", 9), frame(b"", 0x81), frame(bytes(600), 4), frame(b"", 5), frame(b"", 1) + frame(b"", 4),
                 frame(b"", 1) + b"\x02" + struct.pack(">Q", 1 << 62), frame(b"", 1) + frame(bytes((1 << 20) + 1))):
        check(ended(shake_hands(server), data), data[:20])
    check(Client(server).ask("get_action", DEMO)["action.actions"].shape == (16, 4))
    check(server.end()[0] == 0)


@test
def messages_that_never_end_take_no_memory():
    server = Server("--stall-s", "2")
    before = resident(server)
    check(ended(shake_hands(server), frame(b"", 1) + frame(bytes(1 << 20), 1) * 200))
    claims = [shake_hands(server) for _ in range(8)]
    for s in claims:
        s.sendall(frame(b"", 1) + b"\x02" + struct.pack(">Q", 60 << 20) + b"x")
    check(Client(server).ask("get_action", DEMO)["action.actions"].shape == (16, 4))
    check(resident(server) < before + 50, before, resident(server))
    for s in claims:
        check(ended(s))  # of what has begun all comes within --stall-s
    check(server.end()[0] == 0)


@test
def a_flood_of_one_is_answered_in_turn():
    server = Server("--max-connections", "4")
    idle = [socket.create_connection(("127.0.0.1", server.groot_port)) for _ in range(30)]
    dealer = zmq.Context.instance().socket(zmq.DEALER)
    dealer.linger = 0
    dealer.rcvtimeo = int(20000 * SLOW)
    dealer.connect("tcp://127.0.0.1:%d" % server.groot_port)
    for i in range(200):
        dealer.send_multipart([b"", PING if i % 2 else msgpack.packb({"endpoint": "get_action", "data": DEMO}, default=as_npy)])
    answers = [msgpack.unpackb(dealer.recv_multipart()[1]) for _ in range(200)]
    check(all(("status" if i % 2 else "action.actions") in a for i, a in enumerate(answers)))
    for s in idle:
        s.close()
    check(server.end()[0] == 0)


@test
def where_all_work_a_newcomer_is_told():
    server = slow_frames()
    working = [Client(server) for _ in range(3)]
    asks = msgpack.packb({"endpoint": "get_action", "data": DEMO}, default=as_npy)
    for c in working:
        c.socket.send(asks)
    time.sleep(0.1)
    got = Client(server).ask("get_action", DEMO)
    check("max-connections" in got.get("error", ""), got)
    for c in working:
        check("action.actions" in msgpack.unpackb(c.socket.recv()))
    late = Client(server)
    check("max-connections" in late.ask("ping").get("error", ""))  # robots keep their places for a while
    working[0].close()
    time.sleep(0.2)
    check("error" not in late.ask("get_action", DEMO))
    check(server.end()[0] == 0)


@test
def who_shows_no_key_takes_no_robots_place():
    """Connections, requests that never end and answers that nobody reads: of clients without a key."""
    server = Server("--key", key_file(KEY), "--max-connections", "4", "--root", ".",
                    pipeline=special("robot.actions.limits = { max_step = 0.05 }"))
    one = Server("--root", ".", pipeline=special("robot.actions.limits = { max_step = 0.05 }"))
    order = ["left", "right", "left", "right"]
    expected, c, got, crowd = as_float32(openpi_in_turn(one, order, shared=True)), Client(server, token=KEY), [], []
    for i, who in enumerate(order):
        got.append(chunk(c, who))
        crowd += [socket.create_connection(("127.0.0.1", server.groot_port)) for _ in range(40)]
        for s in crowd[-20:]:
            s.close()
        for _ in range(8):
            s = shake_hands(server)
            s.sendall(frame(b"", 1) + (b"\x02" + struct.pack(">Q", 1 << 20) + b"x" if i % 2 else frame(PING) * 2))
            crowd.append(s)
    check(got == expected)
    time.sleep(2.5)  # so long a request is let arrive
    other = Client(server, token=KEY)
    check("error" not in other.ask("ping"))
    check("key" in Client(server).ask("ping")["error"])
    check(server.end()[0] == 0)


def connections(server):
    """Our ports of the connections that the server has, as the system lists them."""
    rows = [line.split() for line in open("/proc/net/tcp")][1:]
    return {row[1] for row in rows if row[2].endswith(":%04X" % server.groot_port) and row[3] == "01"}


@test
def sockets_that_count_requests_and_ask_for_life():
    """The socket of a client that hears no answer to its heartbeats would connect anew, from another port."""
    server = Server()
    s = zmq.Context.instance().socket(zmq.REQ)
    for option, value in ((zmq.REQ_CORRELATE, 1), (zmq.LINGER, 0), (zmq.RCVTIMEO, int(20000 * SLOW)),
                          (zmq.HEARTBEAT_IVL, 100), (zmq.HEARTBEAT_TIMEOUT, int(2000 * SLOW))):
        s.setsockopt(option, value)
    s.connect("tcp://127.0.0.1:%d" % server.groot_port)
    ports = []
    for wait in (0.5, 0.5, 2.5 * SLOW, 0):
        s.send(PING)
        check(msgpack.unpackb(s.recv())["status"] == "ok")
        ports.append(connections(server))
        time.sleep(wait)
    check(len(ports[0]) == 1 and all(p == ports[0] for p in ports), ports)
    s.close()


@test
def a_robot_that_comes_back_is_known():
    """A wrong request does not make the server forget what its robot was given last."""
    path = special("robot.actions.limits = { max_step = 0.05 }")
    one, two = (Server("--root", ".", pipeline=path) for _ in range(2))
    expected = as_float32(openpi_in_turn(one, ["left", "right"], shared=True))
    c = Client(two)
    check(chunk(c, "left") == expected[0])
    check("error" in c.ask("get_action", {"prompt": ["press"]}))
    check(chunk(c, "right") == expected[1])


@test
def who_leaves_is_not_waited_for():
    server = slow_frames()
    asks = msgpack.packb({"endpoint": "get_action", "data": DEMO}, default=as_npy)
    first = Client(server)
    first.socket.send(asks)
    time.sleep(0.1)
    for _ in range(6):
        s = shake_hands(server)
        s.sendall(frame(b"", 1) + frame(asks))
        time.sleep(0.02)
        s.close()
    check("action.actions" in msgpack.unpackb(first.socket.recv()))
    check("error" not in first.ask("get_action", DEMO))
    code, _, err = server.end()
    check(code == 0 and int(err.split(" requests")[0].split()[-1]) < 6, err)


@test
def an_address_may_be_a_name_or_every_interface():
    for host in ("localhost", "0.0.0.0", "::1"):
        try:
            server = Server("--host", host, "--act-port", "0")
        except AssertionError as e:
            if host == "::1" and "address" in str(e):
                continue  # a machine without IPv6
            raise
        c = Client(server, host="[::1]" if host == "::1" else "127.0.0.1")
        check(c.ask("get_action", DEMO)["action.actions"].shape == (16, 4), host)
        check(server.end()[0] == 0)


@test
def a_server_that_ends_answers_what_it_has_begun():
    """The request that is in a frame is answered; those behind it are told, and nobody waits."""
    server = slow_frames()
    asks = msgpack.packb({"endpoint": "get_action", "data": DEMO}, default=as_npy)
    clients = [Client(server) for _ in range(3)]
    for c in clients:
        c.socket.send(asks)
    time.sleep(0.2)
    begin = time.monotonic()
    code, _, err = server.end(signal.SIGTERM)
    check(code == 0 and time.monotonic() - begin < 20 * SLOW, code, err)
    answers = [msgpack.unpackb(c.socket.recv()) for c in clients]
    check(sum("action.actions" in a for a in answers) >= 1 and all("action.actions" in a or "error" in a for a in answers), answers)


@test
def robots_that_ask_for_nothing_do_not_keep_a_server():
    """With time to finish it ends at once where no request is being answered."""
    server = Server("--drain-s", "30")
    c = Client(server)
    check("error" not in c.ask("get_action", DEMO))
    begin = time.monotonic()
    check(server.end(signal.SIGTERM)[0] == 0 and time.monotonic() - begin < 10 * SLOW)


def measure():
    """What a reply takes by openpi's protocol and by GR00T's, in turns."""
    server = Server()
    s, c = server.connect(), Client(server)
    obs = {k: Array("|u1", v[0].shape, v.tobytes()) if v.dtype == np.uint8 else Array("<f4", v[0].shape, v.tobytes())
           for k, v in DEMO.items() if k != "prompt"}
    obs["prompt"] = DEMO["prompt"][0]
    ways = {"openpi's": lambda: s.infer(obs), "GR00T's": lambda: c.ask("get_action", DEMO)}
    serve_harness.times(ways)
    server.end()


if __name__ == "__main__":
    sys.exit(measure() if "--times" in sys.argv else main())
