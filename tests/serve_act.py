"""serve_act.py - POST /act beside openpi's protocol, TAP.  python3 tests/serve_act.py PROGRAM [--times]

What OpenVLA's and OpenVLA-OFT's clients send is answered with the bytes that openpi's clients get for the same
observations; what is wrong is refused with a sentence; and clients that are slow, hostile or gone cost nobody a place.
"""

import base64
import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_client import Array  # noqa: E402
from serve_harness import OBSERVATION, SLOW, STATES, check, key_file, main, openpi_in_turn, special, test, told_apart  # noqa: E402

GOLDEN = "tests/golden/images/decode/"
MANY = "pipelines/graphs/g24_many_robots.lua"
PIXELS = bytes(x * 7 % 256 for x in range(64 * 64 * 3))
STATE = struct.pack("<4d", 0.0, 0.6, 0.2, 1.0)
KEY = "a-key-of-24-characters.."


def numpy(dtype, shape, data):
    """An array as json-numpy writes it."""
    return {"__numpy__": base64.b64encode(data).decode(), "dtype": dtype, "shape": shape}


IMAGE = numpy("|u1", [64, 64, 3], PIXELS)
BLACK = numpy("|u1", [64, 64, 3], bytes(len(PIXELS)))
ASKED = {"image": IMAGE, "wrist_image": IMAGE, "state": numpy("<f8", [4], STATE), "instruction": "press the button"}


class Server(serve_harness.Server):
    def __init__(self, *options, pipeline="pipelines/demo_metaworld.lua", late="--late-ok"):
        super().__init__(pipeline, "--act-port", "0", *([late] if late else []), *options)
        self.url = self.line.split(" and ")[1].split()[0]
        self.act_port = int(self.url.split(":")[2].split("/")[0])


def post(server, body, headers=None, timeout=30.0, path=""):
    """Status, headers and the decoded body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=timeout * SLOW) as reply:
            return reply.status, reply.headers, json.loads(reply.read())
    except urllib.error.HTTPError as e:
        return e.code, e.headers, json.loads(e.read())


def actions(server, body, headers=None):
    """The bytes of the chunk."""
    status, head, rows = post(server, body, headers)
    check(status == 200 and head["Tectum-Source"] == "fresh", status, rows)
    rows = rows if isinstance(rows, list) else [rows]
    check(all(r["dtype"] == "<f8" and r["shape"] == [4] for r in rows), rows[0])
    return b"".join(base64.b64decode(r["__numpy__"]) for r in rows)


def refused(server, body, *words, status=400, headers=None):
    got, _, said = post(server, body, headers)
    check(got == status and all(w in said["error"] for w in words), got, said)
    check("\n" not in said["error"] and said["error"].startswith("tectum: ") == (words[:1] == ("tectum",)), said)


def of_robot(who, **more):
    """The observation of serve_harness's robot, as /act has it."""
    return {"image": BLACK, "wrist_image": BLACK, "state": numpy("<f8", [4], struct.pack("<4d", *STATES[who])),
            "instruction": "press the button", "session_id": who, **more}


def openpi(n=3):
    """What openpi's client gets for the observation, n times, of a server of its own."""
    server = serve_harness.Server("pipelines/demo_metaworld.lua", "--late-ok")
    s = server.connect()
    picture = Array("|u1", [64, 64, 3], PIXELS)
    obs = {"observation/image": picture, "observation/wrist_image": picture,
           "observation/state": Array("<f8", [4], STATE), "prompt": "press the button"}
    got = [s.infer(obs)["actions"].data for _ in range(n)]
    server.end()
    return got


@test
def an_observation_of_openvlas_clients_gives_openpis_bytes():
    server = Server()
    check([actions(server, ASKED) for _ in range(3)] == openpi())
    code, _, err = server.end()
    check(code == 0 and "3 requests, 0 errors" in err, err)


@test
def names_of_the_pipeline_and_of_the_model_mean_the_same():
    expected = openpi(1)[0]
    for change in ({"observation/image": IMAGE, "image": None}, {"full_image": IMAGE, "image": None},
                   {"base_0_rgb": IMAGE, "image": None}, {"left_wrist_image": IMAGE, "wrist_image": None},
                   {"proprio": ASKED["state"], "state": None}, {"prompt": ASKED["instruction"], "instruction": None},
                   {"state": [0.0, 0.6, 0.2, 1.0]}, {"unnorm_key": "metaworld"}, {"unnorm_key": None},
                   {"image": [[list(PIXELS[3 * i:3 * i + 3]) for i in range(64 * y, 64 * y + 64)] for y in range(64)]},
                   {"tectum": {"seed": 0}}, {"something": "else"}):
        server = Server()
        check(actions(server, {**ASKED, **change}) == expected, list(change))
        server.end()


@test
def a_text_in_a_text_is_answered_so():
    server = Server()
    status, _, said = post(server, {"encoded": json.dumps(ASKED)})
    check(status == 200 and isinstance(said, str), said)
    check(b"".join(base64.b64decode(r["__numpy__"]) for r in json.loads(said)) == openpi(1)[0])
    refused(server, {"encoded": json.dumps(ASKED), "image": IMAGE}, "encoded", "nothing beside it")
    refused(server, {"encoded": "{"}, "encoded", "not JSON")
    refused(server, {"encoded": 7}, "encoded")


@test
def json_numpys_own_client():
    try:
        import json_numpy
        import numpy as np
    except ImportError:
        return "json-numpy is not there (sh tools/setup.sh --test)"
    server = Server()
    picture = np.frombuffer(PIXELS, np.uint8).reshape(64, 64, 3)
    sent = json_numpy.dumps({"image": picture, "wrist_image": picture, "state": np.frombuffer(STATE),
                             "instruction": "press the button"})
    request = urllib.request.Request(server.url, sent.encode(), {"Content-Type": "application/json"})
    got = json_numpy.loads(urllib.request.urlopen(request, timeout=30 * SLOW).read())
    check(len(got) == 16 and all(a.shape == (4,) and a.dtype == np.float64 for a in got))
    check(np.array(got).tobytes() == openpi(1)[0])


@test
def a_chunk_of_one_row_is_one_array():
    server = Server("--limit-rows", "1")
    status, _, said = post(server, ASKED)
    check(status == 200 and said["shape"] == [4], said)
    check(base64.b64decode(said["__numpy__"]) == openpi(1)[0][:32])


@test
def a_picture_is_a_file_in_base64():
    server = Server()
    files = json.load(open(GOLDEN + "case.json"))["files"]
    data = open(GOLDEN + "files/" + next(f["file"] for f in files if f["file"].endswith(".png")), "rb").read()
    height, width = struct.unpack(">II", data[16:24])[::-1]
    refused(server, {**ASKED, "image": base64.b64encode(data).decode()}, "observation/image", "%d" % height, "%d" % width)
    refused(server, {**ASKED, "image": "no picture"}, "image", "base64")


@test
def what_is_wrong_is_refused_with_a_sentence():
    server = Server()
    for change, *words in (({"image": None}, "observation/image"), ({"instruction": None}, "prompt"),
                           ({"instruction": 7}, "prompt"), ({"image": 3}, "observation/image"),
                           ({"image": True}, "image", "expected"), ({"state": [1, "2"]}, "state", "entry 2"),
                           ({"state": [[1], [2, 3]]}, "state", "ragged"), ({"state": {"a": 1}}, "state", "__numpy__"),
                           ({"image": numpy("|u1", [64, 64, 4], PIXELS)}, "observation/image"),
                           ({"image": numpy("|O", [64, 64, 3], PIXELS)}, "observation/image"),
                           ({"image": numpy("|u1", [-1, 64, 3], PIXELS)}, "image", "axis 1"),
                           ({"image": numpy("|u1", [1] * 5, b"1")}, "image", "4 axes"),
                           ({"image": {**IMAGE, "__numpy__": "?"}}, "image", "base64"),
                           ({"unnorm_key": "bridge_orig"}, "unnorm_key", "metaworld"), ({"unnorm_key": 3}, "unnorm_key"),
                           ({"session_id": 3}, "session_id"), ({"tectum": 3}, "tectum"),
                           ({"tectum": {"sead": 3}}, "sead"), ({"tectum": {"seed": "x" * 5000}}, "tectum", "long"),
                           ({"tectum": {"tasks": ["text"]}}, "no actions")):
        refused(server, {**ASKED, **change}, *words)
    refused(server, {**ASKED, **{"name%d" % i: 1 for i in range(70)}}, "more than 64")
    for body in (b"", b"[]", b"3", b"{", b"\xff", b'{"image": 1, "image": 2}', b"[" * 100000):
        refused(server, body)
    check(actions(server, ASKED))
    check(server.end()[0] == 0)


@test
def anything_at_all_is_answered():
    server = Server("--max-message-mib", "1")
    draw = random.Random(4)
    sent = json.dumps(ASKED).encode()
    for _ in range(300):
        body = bytearray(sent if draw.random() < 0.5 else json.dumps({**ASKED, "image": draw.choice([[], {}, 1, "", [[]]])}).encode())
        for _ in range(draw.randrange(1, 4)):
            body[draw.randrange(len(body))] = draw.randrange(256)
        status, _, said = post(server, bytes(body))
        check(status in (200, 400), status, said)
    check(server.end()[0] == 0)


def raw(server, data, wait=5.0):
    s = socket.create_connection(("127.0.0.1", server.act_port), timeout=wait * SLOW)
    s.sendall(data)
    return s


def head_of(server, method, path, headers=""):
    s = raw(server, ("%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (method, path, headers)).encode())
    return s.recv(4096).split(b"\r\n")[0].decode()


@test
def other_paths_methods_and_pages_are_refused():
    server = Server()
    check(" 405 " in head_of(server, "GET", "/act"))
    check(" 404 " in head_of(server, "GET", "/"))
    check(" 404 " in head_of(server, "POST", "/act/../x", "Content-Length: 0\r\n"))
    refused(server, ASKED, "Web pages", status=403, headers={"Origin": "http://evil"})
    check(" 413 " in head_of(server, "POST", "/act", "Content-Length: 99999999999\r\n"))
    check(" 413 " in head_of(server, "POST", "/act", "Content-Length: 70000000\r\n"))
    check(" 4" in head_of(server, "POST", "/act", "Content-Length: x\r\n"))
    check(head_of(server, "POST", "/act", "x: %s\r\n" % ("y" * 20000)).split()[1:2] in (["431"], ["413"], []))
    check(server.end()[0] == 0)


@test
def a_body_in_chunks_may_not_grow_for_ever():
    server = Server("--max-message-mib", "1")
    sent = json.dumps(ASKED).encode()
    chunk = b"%x\r\n" % len(sent) + sent + b"\r\n"
    s = raw(server, b"POST /act HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n", 30)
    check(b" 200 " in s.recv(4096))
    s = raw(server, b"POST /act HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(40):
            s.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
        check(s.recv(100) == b"")
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was closed while we wrote
    check(actions(server, ASKED))


@test
def a_key_is_asked_for():
    server = Server("--key", key_file(KEY))
    refused(server, ASKED, "key", status=401)
    refused(server, ASKED, "key", status=401, headers={"Authorization": "Bearer " + KEY[:-1]})
    check(actions(server, ASKED, {"Authorization": "Bearer " + KEY}) == openpi(1)[0])


@test
def robots_have_sessions():
    """Two robots at the same address, who say who they are, do not meet each other's noise."""
    def served(*order):
        server = Server("--set", "frame.sessions=2", "--set", "capture.sessions=[1,2]", pipeline=MANY)
        got = {}
        for who in order:
            got.setdefault(who, []).append(actions(server, {**ASKED, "session_id": who}))
        server.end()
        return got
    alone, both = served("left", "left", "left"), served("left", "right", "left", "right", "left")
    check(both["left"] == alone["left"] and both["right"] == alone["left"][:2])
    check(len(set(alone["left"])) == 3)


@test
def what_the_server_knows_of_a_robot_is_its_own():
    told_apart(Server, lambda server, order: [actions(server, of_robot(who)) for who in order])


@test
def a_substitute_is_the_robots_own_last_command():
    server, soon, late = Server(late=None), {"deadline_ms": 0.01}, {"deadline_ms": 60000}
    last = {}
    for who in ("left", "right"):
        last[who] = actions(server, of_robot(who, tectum=late))[-32:]
    check(last["left"] != last["right"])
    for who in ("left", "right", "left", "right", "left", "right"):  # six misses, three of each: none stops
        status, head, rows = post(server, of_robot(who, tectum=soon))
        check(status == 200 and head["Tectum-Source"] == "held" and head["Tectum-Missed"] == "true", status, rows)
        check(all(base64.b64decode(r["__numpy__"]) == last[who] for r in rows), who)
    refused(server, of_robot("left", tectum=soon), "no actions", "stopped", status=503)
    refused(server, of_robot("right", tectum=late), "no actions", "stopped", status=503)
    check(actions(server, of_robot("right", tectum={**late, "reset": True})))
    refused(server, of_robot("left", session_id="new", tectum=soon), "no actions", "none", status=503)


@test
def a_robot_that_comes_back_is_known():
    """Neither a client that did not wait nor a wrong request makes the server forget what its robot was given last."""
    path = special("robot.actions.limits = { max_step = 0.05 }")
    one, two, three, four = (Server("--root", ".", pipeline=path) for _ in range(4))
    expected = openpi_in_turn(one, ["left", "right"], shared=True)
    check(openpi_in_turn(two, ["left", "right"]) != expected)  # else this test would not see it
    check(actions(three, of_robot("left")) == expected[0])
    refused(three, of_robot("left", image=None), "observation/image")
    check(actions(three, of_robot("right", session_id="left")) == expected[1])
    s = four.connect()  # and so in the server's own protocol
    asked = {**OBSERVATION, "observation/state": Array.floats(STATES["left"]), "tectum": {"session_id": "me"}}
    check(s.infer(asked)["actions"].data == expected[0])
    s.close()
    asked["observation/state"] = Array.floats(STATES["right"])
    check(four.connect().infer(asked)["actions"].data == expected[1])


@test
def who_did_not_wait_is_known():
    server = Server("--root", ".", "--set", "nodes.act.steps=%d" % (1000 / max(1, SLOW / 3)),
                    pipeline=special("robot.actions.limits = { max_step = 0.05 }"))
    first = [struct.unpack_from("<4d", actions(server, of_robot("left")), 32 * i) for i in range(16)]
    opened(server, json.dumps(of_robot("right", session_id="left")).encode()).close()
    time.sleep(0.05)
    second = struct.unpack_from("<4d", actions(server, of_robot("right", session_id="left")))
    check(max(abs(a - b) for a, b in zip(first[7], second)) <= 0.05 + 1e-9, first[7], second)


@test
def an_empty_session_is_none():
    """Who says that it has none is told apart by its address, and takes nobody's."""
    server = Server("--root", ".", pipeline=special("robot.actions.limits = { max_step = 0.05 }"))
    other = Server("--root", ".", pipeline=special("robot.actions.limits = { max_step = 0.05 }"))
    expected = openpi_in_turn(other, ["left", "right", "right", "right", "right", "left"])
    got = [actions(server, of_robot("left"))]
    for change in ({"session_id": ""}, {"session_id": None}, {"session_id": "", "tectum": {"session_id": ""}},
                   {"session_id": None, "tectum": {"session_id": None}}):
        got.append(actions(server, of_robot("right", **change)))
    got.append(actions(server, of_robot("left", session_id=None, tectum={"session_id": "left"})))
    check(got == expected)
    for wrong in (3, [], "x" * 201):
        refused(server, of_robot("left", session_id=wrong), "session_id", "200")
        refused(server, of_robot("left", tectum={"session_id": wrong}), "session_id", status=400)


@test
def more_robots_than_connections_take_turns():
    server = Server("--max-connections", "2")
    for _ in range(2):
        for i in range(5):
            check(actions(server, of_robot("left", session_id="robot %d" % i)))
    check(server.connect().infer(OBSERVATION)["actions"])
    check(server.end()[0] == 0)


def opened(server, body):
    """A connection that has sent this request and waits."""
    return raw(server, b"POST /act HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body, 60)


def slow_frames():
    """Frames of a tenth of a second and more."""
    return Server("--set", "nodes.act.steps=%d" % (1000 / max(1, SLOW / 3)), "--max-connections", "3")


@test
def where_all_work_a_newcomer_is_told():
    server = slow_frames()
    bodies = [json.dumps(of_robot("left", session_id="robot %d" % i)).encode() for i in range(3)]
    for n in (1, 1 << 20, 4 << 20):  # a body is received in any case: its sender reads no answer before
        newcomer = json.dumps({"x": "y" * n}).encode()
        for wait in range(20):  # until it comes while all three frames are under way
            working = [opened(server, b) for b in bodies]
            time.sleep(0.02 * wait)
            got, _, said = post(server, newcomer)
            begun = [s.recv(4096).split(b"\r\n")[0] for s in working]
            for s in working:
                s.close()
            if got == 503 and all(b" 200 " in line for line in begun):
                break
        check(got == 503 and "max-connections" in said["error"], got, said)
        check(all(b" 200 " in line for line in begun), begun)
    check(actions(server, of_robot("right")))
    check(server.end()[0] == 0)


@test
def bodies_that_never_end_keep_nobody_out():
    server = Server("--max-connections", "2")
    slow = [raw(server, b"POST /act HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{") for _ in range(8)]
    time.sleep(2.5)  # so long a body is let arrive
    for _ in range(3):
        check(actions(server, ASKED))
    for s in slow:
        s.close()


@test
def who_leaves_is_not_waited_for():
    """Its request is dropped before it is begun, so the frames are those of who stays."""
    server = slow_frames()
    first = opened(server, json.dumps(of_robot("left")).encode())
    time.sleep(0.1)
    for i in range(6):
        opened(server, json.dumps(of_robot("right", session_id="gone %d" % (i % 2))).encode()).close()
        time.sleep(0.02)
    check(b" 200 " in first.recv(4096).split(b"\r\n")[0])
    check(actions(server, of_robot("left")))
    code, _, err = server.end()
    answered = int(err.split(" requests")[0].split()[-1])
    check(code == 0 and answered < 6, err)


def peak(server):
    """MiB that it has had."""
    return next(int(x.split()[1]) for x in open("/proc/%d/status" % server.p.pid) if x.startswith("VmHWM")) / 1024


@test
def many_small_values_are_refused_before_they_take_memory():
    server = Server("--max-message-mib", "16")
    check(actions(server, ASKED))
    before = peak(server)
    deep = ("[" * 2000 + "]" * 2000 + ",") * 3900
    for text in ("[" + "0," * (7 << 20) + "0]", "[" + deep + "0]", '[' + '{"":' * 40000 + "0" + "}" * 40000 + "]",
                 "[" + "{}," * 70000 + "0]"):
        refused(server, b'{"state": ' + text.encode() + b"}", "more than")
    refused(server, {"encoded": "[" + "0," * (7 << 20) + "0]"}, "more than")
    check(peak(server) < before + 250, before, peak(server))  # copies of 16 MiB; these values would take 500 and more
    check(actions(server, ASKED))


@test
def what_grows_beyond_the_bound_is_too_large():
    server = Server("--max-message-mib", "1")
    numbers = [[[1.5] * 3] * 300] * 150  # 0.7 MB here, of float64 1.08
    refused(server, {**ASKED, "extra": numbers}, "too large", "decoded", status=413)
    check(actions(server, ASKED))


@test
def clients_that_send_nothing_keep_nobody_out():
    server = Server("--max-connections", "4")
    idle = [raw(server, b"POST /act HT") for _ in range(200)]
    time.sleep(0.1)
    check(actions(server, ASKED))
    closed = 0
    for s in idle:  # of very many the oldest are closed
        s.settimeout(0.01)
        try:
            closed += s.recv(1) == b""
        except socket.timeout:
            pass
        except OSError:
            closed += 1
    check(closed >= 70, closed)
    for s in idle:
        s.close()
    for _ in range(100):
        raw(server, b"POST /act HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n").close()
    check(actions(server, ASKED))
    before = len(os.listdir("/proc/%d/fd" % server.p.pid))
    for _ in range(50):
        actions(server, ASKED)
    time.sleep(0.2)
    check(len(os.listdir("/proc/%d/fd" % server.p.pid)) <= before + 1)
    check(server.end()[0] == 0)


@test
def a_body_that_trickles_is_ended():
    server = Server("--stall-s", "1")
    s = raw(server, b"POST /act HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    begin, open_still = time.monotonic(), True
    while open_still and time.monotonic() - begin < 20 * SLOW:
        try:
            s.sendall(b" ")
            time.sleep(0.2)
            s.settimeout(0.001)
            open_still = s.recv(1) != b""
        except socket.timeout:
            pass
        except OSError:
            open_still = False
    check(not open_still)
    check(actions(server, ASKED))


@test
def a_server_that_ends_answers_what_it_has_begun():
    """The request that is in a frame is answered; those behind it are told, and nobody waits."""
    server = slow_frames()
    asked = [opened(server, json.dumps(of_robot("left", session_id="robot %d" % i)).encode()) for i in range(3)]
    time.sleep(0.2)
    begin = time.monotonic()
    code, _, err = server.end(signal.SIGTERM)
    took = time.monotonic() - begin
    heads = [s.recv(4096).split(b"\r\n")[0] for s in asked]
    check(code == 0 and took < 20 * SLOW, code, took, err)
    check(sum(b" 200 " in h for h in heads) >= 1 and all(b" 200 " in h or b" 503 " in h for h in heads), heads)


@test
def robots_that_ask_for_nothing_do_not_keep_a_server():
    """With time to finish it ends at once where no request is being answered."""
    server = Server("--drain-s", "30")
    check(actions(server, ASKED))
    begin = time.monotonic()
    check(server.end(signal.SIGTERM)[0] == 0 and time.monotonic() - begin < 10 * SLOW)
    server = Server("--set", "nodes.act.steps=%d" % (1000 / max(1, SLOW / 3)), "--drain-s", "60")
    s = opened(server, json.dumps(of_robot("left")).encode())
    time.sleep(0.1)
    begin = time.monotonic()
    server.p.send_signal(signal.SIGTERM)
    check(b" 200 " in s.recv(4096).split(b"\r\n")[0])  # what was asked before is answered
    check(server.p.wait(30 * SLOW) == 0 and time.monotonic() - begin < 20 * SLOW)


@test
def a_pipeline_without_a_robot_has_none():
    done = subprocess.run([serve_harness.PROGRAM, "serve", "pipelines/demo_planner.lua", "--port", "0", "--act-port", "0"],
                          capture_output=True, text=True, timeout=60 * SLOW)
    check(done.returncode != 0 and "--act-port" in done.stderr, done.returncode, done.stderr)
    done = subprocess.run([serve_harness.PROGRAM, "serve", "pipelines/demo_metaworld.lua", "--port", "0", "--act-port", "x"],
                          capture_output=True, text=True, timeout=60 * SLOW)
    check(done.returncode == 2 and "--act-port: 'x'" in done.stderr, done.returncode, done.stderr)
    for option in ("--act-port", "--groot-port"):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = subprocess.run([serve_harness.PROGRAM, "serve", "there is no such file", "--port", "0", option,
                                   str(taken.getsockname()[1])], capture_output=True, text=True, timeout=60 * SLOW)
        check(done.returncode != 0 and option in done.stderr and "in use" in done.stderr and "--port" not in done.stderr,
              done.stderr)


def measure():
    """What a reply takes by openpi's protocol, by POST /act, and by it with a connection for each request: in turns."""
    server = Server()
    s = server.connect()
    picture = Array("|u1", [64, 64, 3], PIXELS)
    obs = {"observation/image": picture, "observation/wrist_image": picture,
           "observation/state": Array("<f8", [4], STATE), "prompt": "press the button"}
    kept = http.client.HTTPConnection("127.0.0.1", server.act_port)
    body = json.dumps(ASKED)

    def on(connection):
        connection.request("POST", "/act", body, {"Content-Type": "application/json"})
        check(connection.getresponse().read()[:1] == b"[")
    ways = {"openpi, one connection": lambda: s.infer(obs), "/act, one connection": lambda: on(kept),
            "/act, a connection each": lambda: on(http.client.HTTPConnection("127.0.0.1", server.act_port))}
    serve_harness.times(ways)
    server.end()


if __name__ == "__main__":
    sys.exit(measure() if "--times" in sys.argv else main())
