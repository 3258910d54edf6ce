"""without.py - the protocol of lerobot_policy_tectum without LeRobot, then the policy where LeRobot is.

usage: python3 tests/lerobot_plugin/without.py PROGRAM    with integrations/lerobot/src in PYTHONPATH
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np

# tests/ holds a lerobot.py, which must not be taken for LeRobot: the folder is in the path for these alone.
sys.path.append("tests")
import serve_client  # noqa: E402
from serve_harness import BOX, PROGRAM, SLOW, Server, check, main, servers, test, write_safetensors  # noqa: E402

sys.path.remove("tests")
from lerobot_policy_tectum import chunks, protocol  # noqa: E402

DEMO = "pipelines/demo_metaworld.lua"
rng = np.random.default_rng(3)
SEEN = {"observation/image": rng.integers(0, 256, (64, 64, 3), np.uint8),
        "observation/wrist_image": rng.integers(0, 256, (64, 64, 3), np.uint8),
        "observation/state": np.array([0.0, 0.6, 0.2, 1.0], np.float32)}


def raises(kind, words, f, *a, **k):
    try:
        f(*a, **k)
    except kind as e:
        check(words in str(e), str(e))
        return e
    raise AssertionError(f"no {kind.__name__}")


def run(pipeline, *options):
    """The actions that `tectum run` gives for one observation."""
    out = subprocess.run([PROGRAM, "run", pipeline, "--threads", "1", "--format", "json", *options],
                         stdout=subprocess.PIPE, text=True, check=True, timeout=60 * SLOW).stdout
    return np.array(json.loads(out.splitlines()[0])["actions"]["act"])


def demo_run(prompt="press the button", seed=7):
    path = os.path.join(BOX, "seen.safetensors")
    write_safetensors(path, SEEN)
    return run(DEMO, "--seed", str(seed), "-i", "prompt=" + prompt,
               *(x for name in SEEN for x in ("-i", f"{name}=@{path}#{name}")))


def again(server, *options):
    """A server at the port of one that has ended."""
    p = subprocess.Popen([PROGRAM, "serve", DEMO, "--port", str(server.port), "--threads", "1", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    servers.append(p)
    check(" on ws://" in p.stdout.readline())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@test
def messages_are_those_of_another_implementation():
    for dtype in ("u1", "<f4", "<f8", "<i8"):
        x = np.arange(12).reshape(3, 4).astype(dtype)
        got = serve_client.unpack(protocol.pack({"x": x, "t": "text"}))
        check(got["t"] == "text" and got["x"].shape == (3, 4) and got["x"].data == x.tobytes(), got)
        back = protocol.unpack(serve_client.pack({"x": serve_client.Array(x.dtype.str, x.shape, x.tobytes())}))
        check(back["x"].dtype == x.dtype and (back["x"] == x).all())
    turned = protocol.unpack(protocol.pack({"x": np.arange(6).reshape(2, 3).T.astype(">f4")}))["x"]
    check((turned == np.arange(6).reshape(2, 3).T).all() and turned.dtype == np.dtype("<f4"))


@test
def no_objects_come_or_go():
    raises(TypeError, "numbers only", protocol.pack, {"x": np.array([object()])})
    raises(TypeError, "cannot be sent", protocol.pack, {"x": object()})
    raises(ValueError, "numbers only", protocol.unpack,
           serve_client.pack({"x": serve_client.Array("|O", [1], bytes(8))}))


@test
def pictures():
    every = np.arange(256, dtype=np.uint8).repeat(3).reshape(16, 16, 3)
    check((chunks.picture_of(every.transpose(2, 0, 1).astype(np.float32) / np.float32(255), "x") == every).all())
    check((chunks.picture_of(every, "x") == every).all())
    raises(ValueError, "front: a picture with values", chunks.picture_of, np.full((3, 4, 4), 2.0), "front")
    raises(ValueError, "values", chunks.picture_of, np.full((3, 4, 4), np.nan), "front")
    raises(ValueError, "three channels", chunks.picture_of, np.zeros((4, 4)), "front")


@test
def padding_is_no_row():
    last = np.arange(1, 21, dtype=np.float32).reshape(10, 2)
    last[9] = 0  # a row of zeros that is an action
    padded = np.zeros((8, 2), np.float32)
    padded[:4] = last[6:]
    check((chunks.left_over(padded, last) == last[6:]).all() and len(chunks.left_over(padded, last)) == 4)
    check(len(chunks.left_over(last[2:8], last)) == 6)
    check(len(chunks.left_over(np.zeros((8, 2)), last[:9])) == 0)
    check(len(chunks.left_over(padded, None)) == 3, "without the chunk zeros at the end are padding")


@test
def what_no_robot_may_carry_out():
    good = np.zeros((2, 4))
    wrong = chunks.ActionsUnusable
    check(chunks.actions_of({"actions": good}, 4)[1] == "fresh")
    check(chunks.actions_of({"actions": good, "tectum": {"source": "held"}}, 4, "any")[1] == "held")
    raises(wrong, "'held' actions in place", chunks.actions_of, {"actions": good, "tectum": {"source": "held"}}, 4)
    raises(wrong, "4 columns, the robot's 7", chunks.actions_of, {"actions": good}, 7)
    raises(wrong, "no actions", chunks.actions_of, {"tectum": {}}, 4)
    raises(wrong, "no actions, shape [0, 4]", chunks.actions_of, {"actions": good[:0]}, 4)
    raises(wrong, "not finite", chunks.actions_of, {"actions": good + np.inf}, 4)


@test
def actions_are_those_of_run():
    client = protocol.Client(f"ws://127.0.0.1:{Server(DEMO, '--late-ok').port}", reply_s=20 * SLOW)
    for seed in (7, 8):
        reply = client.infer({**SEEN, "prompt": "press the button", "tectum": {"seed": seed}})
        got = chunks.actions_of(reply, 4)[0]
        check(got.dtype == np.float64 and got.tobytes() == demo_run(seed=seed).tobytes(), seed)
    check(client.connections == 1)
    client.close()


@test
def a_refused_request_says_why_and_the_next_one_is_answered():
    client = protocol.Client(f"ws://127.0.0.1:{Server(DEMO, '--late-ok').port}", reply_s=20 * SLOW)
    raises(protocol.RequestRefused, "observation/state", client.infer,
           {**SEEN, "observation/state": np.zeros(3, np.float32), "prompt": "x"})
    check("actions" in client.infer({**SEEN, "prompt": "press the button"}) and client.connections == 2)
    client.close()


@test
def a_server_that_ends_and_comes_back():
    server = Server(DEMO, "--late-ok")
    client = protocol.Client(f"ws://127.0.0.1:{server.port}", connect_s=1, reply_s=20 * SLOW)
    asked = {**SEEN, "prompt": "press the button", "tectum": {"seed": 7}}
    before = client.infer(asked)["actions"]
    server.end(signal.SIGKILL)
    raises(protocol.ReplyLost, "connection ended", client.infer, asked)
    begin = time.monotonic()
    raises(protocol.ServerUnreachable, "no server within 1 s", client.infer, asked)
    check(time.monotonic() - begin < 3 * SLOW, "the wait is bounded")
    again(server, "--late-ok")
    check((client.infer(asked)["actions"] == before).all() and client.connections == 2)
    client.close()


@test
def a_late_reply_is_not_the_next_requests():
    server = Server(DEMO, "--late-ok")
    client = protocol.Client(f"ws://127.0.0.1:{server.port}", reply_s=0.5)
    client.connect()
    server.p.send_signal(signal.SIGSTOP)
    asked = {**SEEN, "prompt": "press the button", "tectum": {"seed": 7}}
    raises(protocol.ReplyLost, "no reply within 0.5 s", client.infer, asked)
    server.p.send_signal(signal.SIGCONT)
    client.reply_s = 20 * SLOW
    other = client.infer({**asked, "tectum": {"seed": 8}})["actions"]
    check(other.tobytes() == demo_run(seed=8).tobytes())
    client.close()


@test
def who_may_connect():
    path = os.path.join(BOX, "robot.key")
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
        f.write("a-key-of-a-robot-for-a-test\n")
    url = f"ws://127.0.0.1:{Server(DEMO, '--key', path).port}"
    raises(protocol.RequestRefused, "the key is missing", protocol.Client(url).connect)
    raises(protocol.RequestRefused, "the key is wrong", protocol.Client(url, "another-key-of-a-robot").connect)
    right = protocol.Client(url, "a-key-of-a-robot-for-a-test")
    check(list(right.connect()) == ["tectum"])
    right.close()
    raises(protocol.ServerUnreachable, "no server within 0.2 s",
           protocol.Client(f"ws://127.0.0.1:{free_port()}", connect_s=0.2).connect)


try:
    import lerobot  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name not in ("lerobot", "torch"):
        raise

    @test
    def the_policy_in_lerobot():
        return "LeRobot is not installed"
else:
    sys.modules["without"] = sys.modules["__main__"]
    import policy  # noqa: F401  its tests register themselves

sys.exit(main())
