"""left_out.py - a server's clients where a policy leaves actions out, TAP.  python3 tests/left_out.py PROGRAM

Whoever asks for actions in such a frame is given what on_miss says, with `left_out` and no miss, and all else that was
asked for.
"""

import base64
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_client import Array, Socket  # noqa: E402
from serve_harness import BOX, OBSERVATION, PROGRAM, SLOW, check, main, picture, test, variant  # noqa: E402

ARM = {"observation/image": picture, "observation/wrist_image": picture, "prompt": "press the button",
       "observation/state": Array.floats([0.1] * 8)}
AMPLE = "period_ms = 100000"


def skips(when):
    """A policy that leaves `act` out of the n-th frame with a new request for text where `when` holds."""
    path = os.path.join(BOX, "skips.lua")
    with open(path, "w") as f:
        f.write('return policy { name = "skips", api = 1, version = 1, state = { n = 0 }, plan = function(S, F, D)\n'
                'local fresh = false\nfor i = 1, F.nreq do D:decode(i, 8) fresh = fresh or F.req[i].fresh end\n'
                'if fresh then S.n = S.n + 1 end\nif fresh and (%s) then D:skip("act") end end }' % when)
    return path


class Server(serve_harness.Server):
    def __init__(self, pipeline, *options):
        self.control = os.path.join(BOX, "control-%s" % os.path.basename(pipeline))
        super().__init__(pipeline, "--control", self.control, *options)

    def left_out(self):
        """How many actions its status counts, and its metrics; and how many misses."""
        ask = [PROGRAM, "policy", "status", "--control", self.control, "--format"]
        told, shown = (subprocess.run(ask + [how], capture_output=True, text=True, timeout=20 * SLOW).stdout
                       for how in ("json", "text"))
        deadlines = json.loads(told)["deadlines"]
        check(("; %d left out by the policy" % deadlines["left_out"] in shown) == (deadlines["left_out"] > 0), shown)
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.port, timeout=20 * SLOW) as r:
            lines = [line.split() for line in r.read().decode().splitlines()]
        counted = [int(line[1]) for line in lines if line[0] == "tectum_left_out_actions_total"]
        return deadlines["left_out"], counted[0], deadlines["missed"]


def told_to_foxglove(view, what, n):
    """Of each frame that a client is told of while requests are asked: its left_out; and lines of the log."""
    look = Socket(view, headers="Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n", host="127.0.0.1:%d" % view, timeout=20 * SLOW)
    look.message()
    ids = {c["topic"]: c["id"] for c in json.loads(look.message()[1])["channels"]}
    topics = [ids["/tectum/frames"], ids["/tectum/log"]]
    look.frame(1, json.dumps({"op": "subscribe", "subscriptions": [{"id": i, "channelId": i} for i in topics]}).encode())
    look.frame(9, b"settle")
    while look.read() != (10, b"settle"):
        continue
    for _ in range(n):
        what()
    frames, log = [], []
    while len(frames) < n:
        opcode, data = look.message()
        check(opcode == 2, opcode, data[:60])
        one = json.loads(data[13:])
        (frames if data[1] == topics[0] else log).append(one)
    look.close()
    return [f.get("left_out") for f in frames], [x["message"] for x in log if "left out" in x["message"]]


def arm(name, fields):
    return variant(name, 'return extend("graphs/g16_action_may_be_skipped.lua", { name = "%s", frame = { %s }, nodes = { '
                   'action { name = "act", deadline = hard { ms = 90000, on_miss = "%s" } } } })' % (name, AMPLE, fields))


def random(pipeline, *options):
    return Server(pipeline, "--random-weights", "1", "--size", "tiny", "--root", ".", "--policy",
                  "tests/policies/left_out_policy.lua", *options)


@test
def a_client_gets_what_on_miss_says():
    server = random(arm("held", "hold"))
    client = server.connect()
    replies = [client.infer({**ARM, "tectum": {}}) for _ in range(4)]
    told = [r["tectum"] for r in replies]
    check([t["source"] for t in told] == ["none", "fresh", "fresh", "held"], told)
    check([t.get("left_out", False) for t in told] == [True, False, False, True], told)
    check(not any(t["missed"] for t in told) and [t["chunk_id"] for t in told] == [-1, 1, 2, -1], told)
    first, _, last, held = [r["actions"] for r in replies]
    check(first.shape == (0, 7) and held.shape == (8, 7), first.shape, held.shape)
    row = len(last.data) // 8
    check(held.data == last.data[-row:] * 8)
    plain = [client.infer(ARM)["actions"].shape for _ in range(3)]  # one that knows nothing of tectum
    check(plain == [(8, 7)] * 3, plain)
    check(server.left_out() == (3, 3, 0), server.left_out())
    status, _, err = server.end()
    check(status == 0 and "3 requests were answered with what on_miss says" in err and "missed" not in err
          and "at their deadline" not in err, err)


@test
def foxglove_is_told():
    server = random(arm("looked_at", "hold"), "--view", "0")
    line = ""
    while "/view" not in line:
        line = server.p.stderr.readline()
        check(line, "the page's address is said")
    client = server.connect()
    frames, log = told_to_foxglove(int(line.split("/view")[0].split(":")[-1]), lambda: client.infer({**ARM, "tectum": {}}), 4)
    check(frames == ["act", None, None, "act"], frames)
    check(log and set(log) == {"'act' is left out: rests"}, log)
    server.end()


@test
def a_stop_stops():
    server = random(arm("stopped", "stop"))
    client = server.connect()
    told = [client.infer({**ARM, "tectum": {}})["tectum"] for _ in range(2)]
    check([t["source"] for t in told] == ["stopped"] * 2 and told[0]["left_out"] and not told[0]["missed"], told)
    told = client.infer({**ARM, "tectum": {"reset": True}})["tectum"]
    check(told["source"] == "fresh", told)
    server.end()


@test
def who_is_stopped_for_another_one_is_told_too():
    pipeline = variant("both", 'return extend("graphs/g16_action_may_be_skipped.lua", { name = "both", frame = { %s }, nodes = { '
                       'action { name = "act", deadline = hard { ms = 90000, on_miss = "hold", limit = 1 } } } })' % AMPLE)
    server = random(pipeline)
    late, other = server.connect(), server.connect()
    while late.infer({**ARM, "tectum": {"deadline_ms": 0.001}})["tectum"]["source"] != "stopped":
        continue
    told = [other.infer({**ARM, "tectum": {}})["tectum"] for _ in range(3)]
    check([t["source"] for t in told] == ["stopped"] * 3, told)
    check(sum(t.get("left_out", False) for t in told) == 1, told)
    check(all(t["missed"] != t.get("left_out", False) for t in told), told)
    server.end()


@test
def text_that_was_asked_for_comes_with_it():
    pipeline = variant("says", 'return extend("demo_metaworld.lua", { name = "says", frame = { %s }, nodes = { action { name = '
                       '"act", when = policy(), deadline = hard { ms = 90000, on_miss = "zeros" } }, decode { name = "talk", '
                       'spawn = on_request(), deadline = without "deadline" } } })' % AMPLE)
    server = Server(pipeline, "--policy", skips("S.n % 2 == 0"))
    client = server.connect()
    whole, out = [client.infer({**OBSERVATION, "tectum": {"tasks": ["action", "text"]}}) for _ in range(2)]
    check(whole["tectum"]["source"] == "fresh" and whole["tectum"]["text"], whole["tectum"])
    check(out["tectum"]["source"] == "zeros" and out["tectum"]["left_out"] and not any(out["actions"].data), out["tectum"])
    check(out["tectum"]["text"] == whole["tectum"]["text"] and out["tectum"]["text_done"], out["tectum"])
    check(out["tectum"]["request"] == 1 and not out["tectum"]["missed"], out["tectum"])
    said = [client.infer({**OBSERVATION, "tectum": {"tasks": ["text"]}}) for _ in range(2)]
    check(all("actions" not in s and s["tectum"]["text"] == whole["tectum"]["text"] for s in said), said)
    server.end()


@test
def clients_of_openvla_are_told():
    server = random(arm("openvla", "hold"), "--act-port", "0")
    url = server.line.split(" and ")[1].split()[0]

    def numpy(dtype, shape, data):
        return {"__numpy__": base64.b64encode(data).decode(), "dtype": dtype, "shape": shape}

    image = numpy("|u1", [64, 64, 3], bytes(64 * 64 * 3))
    body = json.dumps({"full_image": image, "wrist_image": image, "state": numpy("<f8", [8], bytes(64)),
                       "instruction": "press the button"}).encode()

    def ask():
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}),
                                        timeout=30 * SLOW) as reply:
                return reply.status, reply.headers["Tectum-Source"], reply.headers["Tectum-Left-Out"], json.loads(reply.read())
        except urllib.error.HTTPError as e:
            return e.code, None, None, json.loads(e.read())

    none, _, fresh, held = [ask() for _ in range(4)]
    check(none[0] >= 400 and "no actions" in none[3]["error"], none)  # it would carry out an empty chunk
    check(fresh[:3] == (200, "fresh", None) and held[:3] == (200, "held", "true"), fresh[:3], held[:3])
    check(held[3][0] == fresh[3][-1] and len(held[3]) == 8, held[3])
    server.end()


if __name__ == "__main__":
    sys.exit(main())
