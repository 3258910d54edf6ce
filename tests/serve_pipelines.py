"""serve_pipelines.py - several pipelines in one server, TAP.  python3 tests/serve_pipelines.py PROGRAM

Each pipeline has a port and robots of its own; replies are, byte for byte, those of a server that has
the pipeline alone, whatever the others are asked. They share the thread that runs frames and its device:
a robot waits for at most one frame of each other pipeline, and never for the end of their language.
"""

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from mcap_file import Recording  # noqa: E402
from serve_client import Array, Socket  # noqa: E402
from serve_harness import BOX, OBSERVATION, PROGRAM, SIDE, SLOW, Servers, check, main, test  # noqa: E402

ARM, MANY = "pipelines/demo_metaworld.lua", "pipelines/graphs/g24_many_robots.lua"
PROMPTS = ["press the button", "open the drawer"]


def observation(robot, i, **options):
    picture = Array("|u1", [SIDE, SIDE, 3], bytes(x * (robot + i + 1) // 64 % 256 for x in range(SIDE * SIDE * 3)))
    obs = {"observation/image": picture, "observation/wrist_image": picture,
           "observation/state": Array.floats([0.1 * robot, 0.6, 0.2, 1.0]), "prompt": PROMPTS[(robot + i) % 2]}
    return {**obs, "tectum": options} if options else obs


def replies(connect, robot, rounds=6, text=True):
    s, got = connect(), []
    for i in range(rounds):
        tasks = ["action", "text"] if text and i % 2 else ["action"]
        r = s.infer(observation(robot, i, tasks=tasks))
        got.append((r["actions"].data, r["tectum"].get("text")))
    return got


def at_once(*calls):
    got = [None] * len(calls)

    def run(i):
        got[i] = calls[i]()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return got


@test
def each_pipeline_answers_as_if_it_were_alone():
    """Two robots of one kind with sessions beside another one, all with texts, all at once."""
    both = Servers(ARM, MANY, options=["--late-ok"])
    got = at_once(lambda: replies(lambda: both.connect(0), 0), lambda: replies(lambda: both.connect(1), 1),
                  lambda: replies(lambda: both.connect(1), 2))
    both.end()
    for pipeline, robot, had in ((ARM, 0, got[0]), (MANY, 1, got[1]), (MANY, 2, got[2])):
        alone = serve_harness.Server(pipeline, "--late-ok")
        check(replies(alone.connect, robot) == had, pipeline, robot)
        alone.end()
    check(got[1] != got[2])


def planner(name):
    """The bundled planner, which has a memory and no actions, with a store of its own."""
    return serve_harness.variant(name, 'return extend("demo_memory.lua", { name = "planner", resources = '
                                 '{ kv.segments { name = "mem", store = "%s/%s.memory" } } })\n' % (BOX, name))


def answers(connect):
    s = connect()
    return [s.infer({"goal": goal, "tectum": {"tasks": ["text"]}})["tectum"]["text"] for goal in ("find:fork", "find:cup")]


@test
def a_planner_beside_an_arm_says_what_it_says_alone():
    alone = serve_harness.Server(planner("alone"), "--root", ".")
    said = answers(alone.connect)
    alone.end()
    both = Servers(ARM, planner("beside"), options=["--late-ok", "--root", "."])
    got = at_once(lambda: replies(lambda: both.connect(0), 0), lambda: answers(lambda: both.connect(1)))
    both.end()
    arm = serve_harness.Server(ARM, "--late-ok")
    check(got == [replies(arm.connect, 0), said] and all(said), got[1], said)


def get(port, path):
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=20 * SLOW) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def free_ports(n):
    """The first of n ports that follow each other and that nobody has."""
    while True:
        held = []
        try:
            held.append(socket.create_server(("127.0.0.1", 0)))
            first = held[0].getsockname()[1]
            held += [socket.create_server(("127.0.0.1", first + i)) for i in range(1, n)]
            return first
        except (OSError, OverflowError):
            pass
        finally:
            for s in held:
                s.close()


def port_before_a_taken_one():
    """Sockets of two ports that follow each other: nobody takes the first, though servers may share it; the second is listened to."""
    while True:
        before, taken = socket.socket(), socket.socket()
        try:
            before.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            before.bind(("127.0.0.1", 0))
            taken.bind(("127.0.0.1", before.getsockname()[1] + 1))
            taken.listen()
            return before, taken
        except (OSError, OverflowError):
            before.close()
            taken.close()


@test
def ports_and_paths_are_told_apart():
    base, act = free_ports(2), free_ports(2)
    files = BOX + "/live.mcap", BOX + "/control"
    both = Servers(ARM, MANY, port=str(base), options=["--late-ok", "--act-port", str(act), "--record", files[0], "--control", files[1]])
    check(both.ports == [base, base + 1], both.lines)
    check("http://127.0.0.1:%d/act" % act in both.lines[0] and ":%d/act" % (act + 1) in both.lines[1], both.lines)
    names = [x.split()[1] for x in both.lines]
    check(names[0] == "demo_metaworld" and names[1] != names[0], names)
    body = json.dumps({"observation/state": [0.0, 0.6, 0.2, 1.0], "prompt": "press the button",
                       **{k: {"__numpy__": "AAAA" * (SIDE * SIDE), "dtype": "|u1", "shape": [SIDE, SIDE, 3]}
                          for k in ("observation/image", "observation/wrist_image")}}).encode()
    for i in range(2):
        both.connect(i).infer(OBSERVATION)
        request = urllib.request.Request("http://127.0.0.1:%d/act" % (act + i), body)
        with urllib.request.urlopen(request, timeout=20 * SLOW) as r:
            check(len(json.loads(r.read())) == 16, i)
        status, text = get(base + i, "/metrics")
        check(status == 200 and 'pipeline="%s"' % names[i] in text and names[1 - i] not in text, text)
        check(os.path.exists("%s.%s" % (files[1], names[i])))
        top = subprocess.run([PROGRAM, "explain", "--control", "%s.%s" % (files[1], names[i])], capture_output=True, text=True)
        check(top.returncode == 0, top)
    both.end()
    for name in names:
        path = "%s/live.%s.mcap" % (BOX, name)
        done = subprocess.run([PROGRAM, "replay", path, "--format", "json"], capture_output=True, text=True)
        check(done.returncode == 0, name, done.stdout, done.stderr)


@test
def figures_at_the_end_are_each_pipelines():
    both = Servers(ARM, MANY, options=["--format", "json"])
    names = [json.loads(x)["serving"] for x in both.lines]
    s = both.connect(1)
    for i in range(3):
        s.infer(observation(0, i))
    s.close()
    status, out, err = both.end()
    ends = [json.loads(x) for x in out.splitlines()]
    check(status == 0 and [x["pipeline"] for x in ends] == names, out, err)
    check([x["requests"] for x in ends] == [0, 3], ends)


@test
def a_stop_is_of_one_pipeline():
    both = Servers(ARM, MANY, options=["--set", "nodes.act.deadline.on_miss=stop"])
    s, other = both.connect(0), both.connect(1)
    s.infer(observation(0, 0, deadline_ms=60000))
    check(s.infer(observation(0, 1, deadline_ms=0.001))["tectum"]["source"] == "stopped")
    check(get(both.ports[0], "/readyz")[0] == 503 and get(both.ports[1], "/readyz")[0] == 200)
    check(other.infer(observation(0, 0, deadline_ms=60000))["tectum"]["source"] == "fresh")
    other.infer(observation(0, 1, reset=True))  # resets its own
    check(get(both.ports[0], "/readyz")[0] == 503)
    _, _, err = both.end()
    check("tectum serve demo_metaworld: the robot is stopped" in err, err)


@test
def a_robot_waits_for_one_frame_of_the_others():
    """Eight clients of one pipeline ask without end, each with a deadline before everybody's."""
    files = BOX + "/crowd.mcap"
    both = Servers(ARM, MANY, options=["--late-ok", "--record", files])
    names = [x.split()[1] for x in both.lines]
    over = threading.Event()

    def crowd(robot):
        s = both.connect(0)
        while not over.is_set():
            s.infer(observation(robot, 0, deadline_ms=500 * SLOW))
    threads = [threading.Thread(target=crowd, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    s = both.connect(1)
    for i in range(12):
        for options in ({"tasks": ["action"]}, {"deadline_ms": 60000}):
            check(s.infer(observation(0, i, **options))["tectum"]["source"] == "fresh")
    over.set()
    for t in threads:
        t.join()
    both.end()
    crowd_frames, own = (observed("%s/crowd.%s.mcap" % (BOX, name)) for name in names)
    check(len(crowd_frames) > 24 and len(own) == 24, len(crowd_frames), len(own))
    passed = sorted(sum(tick < start < begins for _, start in crowd_frames) for tick, begins in own)
    # Where the machine is busy, a request may have been whole for a while before the frame thread is told.
    check(passed[len(own) * 3 // 4] <= 1, passed)


def observed(path):
    """Of each frame with an observation, when that had come and when the frame began, in microseconds."""
    recording = Recording(path)
    seen = {(x["session"], x["frame"]) for x in recording.of("/tectum/ticks") if x["observed"]}
    frames = [(x["session"], x["frame"], x["tick_us"], x["start_us"]) for x in recording.of("/tectum/frames")]
    return [(tick, start) for session, frame, tick, start in frames if (session, frame) in seen]


@test
def robots_leave_one_pipeline_after_the_other():
    both = Servers(ARM, MANY, options=["--drain-s", "600"])
    s, other = both.connect(0), both.connect(1)
    both.p.send_signal(signal.SIGTERM)
    for port in both.ports:
        while get(port, "/readyz")[0] == 200:  # until the signal has come
            pass
    s.close()
    for i in range(8):  # the first pipeline's frames have ended meanwhile
        check(other.infer(observation(0, i, deadline_ms=60000))["actions"].shape == (16, 4))
        time.sleep(0.1)
    check(both.p.poll() is None)
    other.close()
    check(both.p.wait(30 * SLOW) == 0)


@test
def a_signal_is_obeyed_by_all():
    dumps = BOX + "/dumps"
    os.mkdir(dumps)
    both = Servers(ARM, MANY, options=["--dump-dir", dumps])
    for i in range(2):
        both.connect(i).infer(OBSERVATION)
    both.p.send_signal(signal.SIGUSR1)
    names = [x.split()[1] for x in both.lines]
    wanted = lambda: sorted({x.split("-")[0] for x in os.listdir(dumps) if x.endswith(".mcap")})
    for _ in range(int(300 * SLOW)):
        if wanted() == sorted(names):
            break
        time.sleep(0.1)
    check(wanted() == sorted(names), os.listdir(dumps))


def refused(*words):
    threads = [] if "--threads" in words else ["--threads", "1"]
    done = subprocess.run([PROGRAM, "serve", *words, *threads], capture_output=True, text=True, timeout=120 * SLOW)
    return done.returncode, done.stderr


@test
def what_cannot_be_served_together_is_refused():
    before, taken = port_before_a_taken_one()
    with before, taken:
        port = taken.getsockname()[1]
        for code, words, *command in (
                (2, "are both named", ARM, ARM), (2, "of one pipeline", ARM, MANY, "--weights", BOX),
                (2, "of one pipeline", ARM, MANY, "--costs", BOX + "/none"), (3, "no_such_file", ARM, "no_such_file.lua"),
                (2, "one argument too many", *["x%d.lua" % i for i in range(17)]), (2, "65536", ARM, MANY, "--port", "65535"),
                (3, str(port), ARM, MANY, "--port", str(port - 1)),
                *[(2, "--%s" % late, ARM, MANY, "--" + early, "41000", "--" + late, port)
                  for early, late in (("port", "act-port"), ("act-port", "groot-port"), ("groot-port", "view"))
                  for port in ("41001", "40999", "41000")],
                (2, "--port 8000 and --act-port 8001", ARM, MANY, "--act-port", "8001"),
                (2, "--port 41000 and --view 41000", ARM, "--port", "41000", "--view", "41000"),
                (2, "x/y", ARM, slashed())):
            got = refused(*command)
            check(got[0] == code and words in got[1], words, got)


def slashed():
    return serve_harness.variant("slashed", 'return extend("demo_metaworld.lua", { name = "x/y" })\n')


def split(name, share):
    """The demo with its actions on a part of the lanes."""
    return serve_harness.variant(name, '''return extend("demo_metaworld.lua", { name = "%s",
        nodes = { action { name = "act", partition = "rt" } },
        partitions = { sm { name = "rt", share = %g }, sm { name = "bg", share = %g } } })\n''' % (name, share, 1 - share))


@test
def lanes_are_split_as_the_first_pipeline_splits_them():
    three = Servers(split("first", 0.5), ARM, split("third", 0.5), options=["--late-ok", "--root", ".", "--threads", "4"])
    check(three.connect(2).infer(observation(0, 0))["actions"].shape == (16, 4))
    three.end()
    code, err = refused(split("first", 0.5), ARM, split("third", 0.25), "--port", "0", "--root", ".", "--threads", "4")
    check(code != 0 and "pipeline third, beside pipeline first" in err, code, err)


@test
def two_sockets_are_handed_over():
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b:
        def put():
            spare = os.dup(b.fileno())
            first = os.dup(a.fileno())
            spare, first = [fcntl.fcntl(x, fcntl.F_DUPFD, 20) for x in (spare, first)]
            os.dup2(first, 3)
            os.dup2(spare, 4)
            for fd in (3, 4):
                os.set_inheritable(fd, True)

        def started(n, *pipelines):
            words = 'LISTEN_PID=$$ LISTEN_FDS=%d exec "$@"' % n
            p = subprocess.Popen(["sh", "-c", words, "sh", PROGRAM, "serve", *pipelines, "--threads", "1", "--late-ok"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, close_fds=False, preexec_fn=put)
            serve_harness.servers.append(p)
            return p
        p = started(1, ARM, MANY)
        check("one for each pipeline" in p.communicate(timeout=60 * SLOW)[1] and p.returncode == 2)
        p = started(2, ARM, MANY)
        lines = [p.stdout.readline() for _ in range(2)]
        for s, line in zip((a, b), lines):
            check(":%d " % s.getsockname()[1] in line, lines)
            robot = Socket(s.getsockname()[1], timeout=20 * SLOW)
            check("tectum" in robot.reply() and robot.infer(OBSERVATION)["actions"].shape == (16, 4))


if __name__ == "__main__":
    sys.exit(main())
