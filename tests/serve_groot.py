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
from serve_harness import BOX, SLOW, check, main, test, variant  # noqa: E402

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


def chunk(client):
    return client.ask("get_action", DEMO)["action.actions"].tobytes()


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
    """Of two sessions the robot that resets has the one that was used longest ago: its own, and the other's stays."""
    server = many_robots()
    c, other = Client(server), Client(server)
    chunk(c), chunk(other)
    check(c.ask("reset", {"options": None}) == {} and c.ask("reset") == {})
    first = chunk(c)
    check(chunk(other) == first)  # both are at the second draw of noise: nobody lost a session
    check(server.end()[0] == 0)


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
    path = os.path.join(BOX, "key")
    with open(path, "w") as f:
        f.write(KEY + "\n")
    os.chmod(path, 0o600)
    server = Server("--key", path)
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


@test
def sockets_that_are_no_clients():
    server = Server("--max-message-mib", "1")
    idle = [socket.create_connection(("127.0.0.1", server.groot_port)) for _ in range(30)]
    for s in idle[:10]:
        s.sendall(b"GET / HTTP/1.1\r\n\r\n")
    dealer = zmq.Context.instance().socket(zmq.DEALER)
    dealer.linger = 0
    dealer.rcvtimeo = int(20000 * SLOW)
    dealer.connect("tcp://127.0.0.1:%d" % server.groot_port)
    for frames in ([b"x"], [b"", b"x", b"y"], [b"", b"", b""], [b"x"] * 50):
        dealer.send_multipart(frames)
    ping = msgpack.packb({"endpoint": "ping"})
    dealer.send_multipart([b"", ping])
    check(msgpack.unpackb(dealer.recv_multipart()[1])["status"] == "ok")
    for _ in range(200):  # a flood of one: what is too early is refused, nothing is lost
        dealer.send_multipart([b"", msgpack.packb({"endpoint": "get_action", "data": DEMO}, default=as_npy)])
    answers = [msgpack.unpackb(dealer.recv_multipart()[1]) for _ in range(200)]
    check(any("error" in a and "before" in a["error"] for a in answers) and any("error" not in a for a in answers))
    big = Client(server)
    big.socket.rcvtimeo = 500
    big.socket.send(bytes(2 << 20))
    try:
        big.socket.recv()
        check(False)
    except zmq.Again:
        pass  # the connection was closed
    check(Client(server).ask("get_action", DEMO)["action.actions"].shape == (16, 4))
    for s in idle:
        s.close()
    check(server.end()[0] == 0)


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
def a_server_that_ends_says_so():
    server = Server()
    c = Client(server)
    check("error" not in c.ask("get_action", DEMO))
    begin = time.monotonic()
    code, _, err = server.end(signal.SIGTERM)
    check(code == 0 and time.monotonic() - begin < 10 * SLOW, code, err)


def times(rounds=300):
    """What a reply takes by openpi's protocol and by GR00T's, in turns."""
    server = Server()
    s, c = server.connect(), Client(server)
    obs = {k: Array("|u1", v[0].shape, v.tobytes()) if v.dtype == np.uint8 else Array("<f4", v[0].shape, v.tobytes())
           for k, v in DEMO.items() if k != "prompt"}
    obs["prompt"] = DEMO["prompt"][0]
    ways = {"openpi's": lambda: s.infer(obs), "GR00T's": lambda: c.ask("get_action", DEMO)}
    taken = {name: [] for name in ways}
    for _ in range(rounds):
        for name, ask in ways.items():
            begin = time.perf_counter()
            ask()
            taken[name].append(1e3 * (time.perf_counter() - begin))
    for name, ms in taken.items():
        ms.sort()
        print("%-10s p50 %6.2f  p99 %6.2f  max %6.2f ms" % (name, ms[rounds // 2], ms[rounds * 99 // 100], ms[-1]))
    server.end()


if __name__ == "__main__":
    sys.exit(times() if "--times" in sys.argv else main())
