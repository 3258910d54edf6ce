"""serve_sessions.py - one server for several robots of one kind, TAP.  python3 tests/serve_sessions.py PROGRAM

Each client has a session of the pipeline: its replies are, byte for byte, those that it gets from a
server of its own, whatever the others send, and a session that changes its client begins anew.
"""

import json
import os
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from mcap_file import Recording  # noqa: E402
from serve_client import Array  # noqa: E402
from serve_harness import BOX, PROGRAM, SIDE, SLOW, check, main, test  # noqa: E402

MANY = "pipelines/graphs/g24_many_robots.lua"  # four robots
MEMORIES = "tests/pipelines/graphs/memory_many.lua"  # three that remember
ROUNDS = 4
PROMPTS = ["press the button", "open the drawer"]


class Server(serve_harness.Server):
    def __init__(self, sessions, *options, gather_ms=20, pipeline=MANY):
        slow = ["--set", "nodes.talk.deadline.ms=60000"] if SLOW > 1 else []
        captures = "capture.sessions=[%s]" % ",".join(str(n + 1) for n in range(sessions))
        if pipeline != MANY:
            captures = "capture.sessions=[1]"  # a prompt of segments is a launch of its own
        super().__init__(pipeline, "--late-ok", "--set", "frame.sessions=%d" % sessions, "--set",
                         "frame.gather_ms=%d" % (gather_ms if sessions > 1 else 0), "--set", captures, *slow, *options)


def observation(robot, i, **options):
    picture = Array("|u1", [SIDE, SIDE, 3], bytes(x * (robot + i + 1) // 64 % 256 for x in range(SIDE * SIDE * 3)))
    obs = {"observation/image": picture, "observation/wrist_image": picture,
           "observation/state": Array.floats([0.1 * robot, 0.6, 0.2, 1.0]), "prompt": PROMPTS[(robot + i) % 2]}
    return {**obs, "tectum": options} if options else obs


def replies(server, robot, rounds=ROUNDS, text=False, s=None, **options):
    """Actions, and texts where they are asked for."""
    s = s or server.connect()
    options = {**options, "tasks": ["action", "text"]} if text else options
    got = []
    for i in range(rounds):
        r = s.infer(observation(robot, i, **options))
        got.append((r["actions"].data, r["tectum"]["text"] if text else None))
    return got


def alone(robot, **how):
    server = Server(1)
    got = replies(server, robot, **how)
    server.end()
    return got


def together(server, robots, **how):
    """The replies of these robots, who all talk at once."""
    got, threads = {}, []
    for r in robots:
        def run(r=r):
            got[r] = replies(server, r, **how)
        threads.append(threading.Thread(target=run))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(len(got) == len(list(robots)), "a client failed")
    return got


def remembering(server, robot):
    """The replies to a robot that is told something each time, and once to forget it."""
    s, got = server.connect(), []
    for i in range(ROUNDS):
        told = {"remove": ["door"]} if i == 2 else {"put": {"door": "door %d of %d is open" % (i, robot)}}
        got.append(s.infer({**observation(robot, i), "memory": json.dumps(told)})["actions"].data)
    return got


@test
def each_robot_remembers_what_it_was_told():
    server, got = Server(3, pipeline=MEMORIES), {}
    threads = [threading.Thread(target=lambda r=r: got.update({r: remembering(server, r)})) for r in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for robot in range(3):
        own = Server(1, pipeline=MEMORIES)
        check(got[robot] == remembering(own, robot), robot)
        own.end()
    untold = [actions for actions, _ in replies(Server(1, pipeline=MEMORIES), 1)]
    check(got[1] != untold, "what was told changes nothing")


@test
def each_robot_has_the_replies_of_a_server_of_its_own():
    got = together(Server(3), range(3))
    for robot in range(3):
        check(got[robot] == alone(robot), robot)
    check(got[0] != got[1])


@test
def texts_are_those_of_their_robot():
    got = together(Server(2), range(2), text=True)
    for robot in range(2):
        check(got[robot] == alone(robot, text=True), robot)
    check(all(text for robot in got.values() for _, text in robot), got)


@test
def observations_that_come_together_share_a_launch():
    server = Server(2, "--record", BOX + "/two.mcap", gather_ms=90)
    a, b = server.connect(), server.connect()
    replies(server, 0, 1, s=a), replies(server, 1, 1, s=b)  # both have their sessions
    for i in range(10):
        a.send(observation(0, i))
        b.send(observation(1, i))
        a.reply(), b.reply()
    server.end()
    out = subprocess.run([PROGRAM, "trace", "--chrome", BOX + "/two.mcap"], capture_output=True, text=True)
    check(out.returncode == 0, out.stderr)
    rows = [e["args"]["rows"] for e in json.loads(out.stdout)["traceEvents"] if e["ph"] == "X" and e["name"] == "see"]
    check(max(rows) == 2, rows)


def replayed(path):
    done = subprocess.run([PROGRAM, "replay", path, "--format", "json"], capture_output=True, text=True)
    check(done.returncode == 0, done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


@test
def what_robots_were_given_is_replayed():
    """Frames of one robot, of the other and of both; given noise; an episode that begins anew; texts."""
    path = BOX + "/again.mcap"
    server = Server(2, "--record", path, gather_ms=40)
    a, b = server.connect(), server.connect()
    replies(server, 0, 3, s=a), replies(server, 1, 1, s=b)
    for i in range(6):
        a.send(observation(0, 3 + i, tasks=["action", "text"] if i == 2 else ["action"]))
        if i % 3:
            b.send(observation(1, 1 + i, reset=i == 4))
            b.reply()
        a.reply()
    replies(server, 1, 2, s=b)
    server.end()
    ticks = [x["session"] for x in Recording(path).of("/tectum/ticks") if x["observed"]]
    counts = replayed(path)
    check(counts["actions"]["equal"] == len(ticks), counts, len(ticks))
    check(counts["actions"]["differ"] == counts["actions"]["missing"] == 0, counts)
    check(counts["texts"]["equal"] > 0 and counts["texts"]["differ"] == 0, counts)


@test
def recorded_texts_are_of_their_robot_and_frame():
    path = BOX + "/texts.mcap"
    server = Server(2, "--record", path)
    a, b = server.connect(), server.connect()
    replies(server, 0, 6, s=a)  # the first robot is some frames ahead
    together_texts = [s.infer(observation(i, 0, tasks=["action", "text"]))["tectum"] for i, s in enumerate((a, b))]
    server.end()
    recording = Recording(path)
    ticks = {(x["session"], x["number"]): x["frame"] for x in recording.of("/tectum/ticks") if x["observed"]}
    for robot, reply in enumerate(together_texts):
        own = [x for x in recording.of("/tectum/text/talk") if x["request"] == reply["request"]]
        frame = ticks[robot, reply["chunk_id"]]
        check(own and {(x["session"], x["frame"]) for x in own} == {(robot, frame)}, frame, reply, own)
        check("".join(x["text"] for x in own) == reply["text"], reply, own)


@test
def more_clients_than_sessions_take_turns():
    server = Server(2)
    got = together(server, range(5), seed=7)  # so that actions do not depend on how many there were before
    for robot in range(5):
        check(got[robot] == alone(robot, seed=7), robot)
    check(server.end()[0] == 0)


@test
def a_client_that_is_silent_or_leaves_keeps_nobody_waiting():
    server = Server(3)
    silent, leaves = server.connect(), server.connect()
    replies(server, 1, 1, s=silent)
    leaves.send(observation(2, 0))
    leaves.close()
    check(replies(server, 0) == alone(0))


@test
def a_robot_that_connects_anew_goes_on():
    server = Server(2)
    other = server.connect()
    got = []
    for i in range(ROUNDS):
        s = server.connect()
        got.append((s.infer(observation(0, i, session_id="arm"))["actions"].data, None))
        s.close()
        replies(server, 1, 1, s=other)
    check(got == alone(0))
    s = server.connect()
    s.send(observation(0, 0, session_id="x" * 201))
    check("tectum.session_id: must be a text" in s.failure()[0])


@test
def a_wrong_request_ends_its_own_connection_only():
    server = Server(2)
    good, bad = server.connect(), server.connect()
    first = replies(server, 0, 1, s=good)
    bad.send({"observation/image": "no picture"})
    check("tectum" in bad.failure()[0])
    check(first == alone(0, rounds=1))
    check(len(replies(server, 0, 2, s=good)) == 2)
    text = urllib.request.urlopen("http://127.0.0.1:%d/metrics" % server.port, timeout=20 * SLOW).read().decode()
    check('tectum_requests_total{status="answered"} 3' in text, text)


@test
def a_reset_is_of_one_robot():
    server = Server(2)
    a, b = server.connect(), server.connect()
    got = {0: replies(server, 0, s=a), 1: replies(server, 1, 2, s=b)}
    a.infer(observation(0, 0, reset=True))
    got[1] += [(b.infer(observation(1, i))["actions"].data, None) for i in (2, 3)]
    check(got[0] == alone(0) and got[1] == alone(1))


sys.exit(main())
