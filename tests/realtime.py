"""realtime.py - scheduling of a server's threads, TAP.  python3 tests/realtime.py PROGRAM

Threads that compute and the one that sends are scheduled as asked, each where it was asked; all others stay as they are;
and what the system does not allow is one error that names the setting.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from serve_harness import BOX, OBSERVATION, SLOW, check, main, test  # noqa: E402

FIFO, CORES = 1, sorted(os.sched_getaffinity(0))
DEMO = "pipelines/demo_metaworld.lua"


def allowed():
    return subprocess.run(["chrt", "-f", "20", "true"], capture_output=True).returncode == 0


def may_lock():
    done = subprocess.run([serve_harness.PROGRAM, "run", DEMO, "--random-inputs", "1", "-n", "1", "--clock", "paced", "--lock-memory"],
                          capture_output=True, text=True, timeout=60 * SLOW)
    return "memlock" not in done.stderr


def threads(pid):
    """(policy, priority, cores) of each thread, the first one's first."""
    got = []
    for tid in sorted(os.listdir("/proc/%d/task" % pid), key=int):
        tid = int(tid)
        got.append((os.sched_getscheduler(tid), os.sched_getparam(tid).sched_priority, sorted(os.sched_getaffinity(tid))))
    return got


def locked_kib(pid):
    return next(int(x.split()[1]) for x in open("/proc/%d/status" % pid) if x.startswith("VmLck"))


@test
def threads_are_scheduled_as_asked():
    if not allowed() or len(CORES) < 2:
        return "SCHED_FIFO and two cores are not to be had"
    a, b = CORES[:2]
    server = serve_harness.Server(DEMO, "--threads", "2", "--realtime", "10", "--cores", "%d,%d" % (a, b), "--act-port", "0")
    check(server.connect().infer(OBSERVATION)["actions"])
    got = threads(server.p.pid)
    check(got[0] == (FIFO, 10, [a]), got)  # the thread of the frames
    check(got.count((FIFO, 10, [b])) == 1, got)  # the other lane
    check([t for t in got if t[:2] == (FIFO, 11)] == [(FIFO, 11, CORES)], got)  # who sends
    others = [t for t in got if t[1] not in (10, 11)]
    check(others and all(t == (0, 0, CORES) for t in others), got)
    check(server.end()[0] == 0)


@test
def cores_alone_and_nothing():
    server = serve_harness.Server(DEMO, "--cores", str(CORES[-1]))
    got = threads(server.p.pid)
    check(got[0] == (0, 0, CORES[-1:]) and all(t == (0, 0, CORES) for t in got[1:]), got)
    server = serve_harness.Server(DEMO)
    check(all(t == (0, 0, CORES) for t in threads(server.p.pid)) and locked_kib(server.p.pid) == 0)


@test
def memory_is_locked():
    if not may_lock():
        return "memory may not be locked here"
    server = serve_harness.Server(DEMO, "--lock-memory")
    check(locked_kib(server.p.pid) > 8 << 10, locked_kib(server.p.pid))  # more than the weights
    check(server.connect().infer(OBSERVATION)["actions"])
    check(server.end()[0] == 0)


def refused(words, *options, verb="serve", under=()):
    command = [*under, serve_harness.PROGRAM, verb, DEMO, *(["--port", "0"] if verb == "serve" else []), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * SLOW)
    check(done.returncode != 0 and all(w in done.stderr for w in words) and done.stdout == "", done.returncode, done.stderr)
    said = [line for line in done.stderr.splitlines() if "no CUDA device" not in line]
    check(len(said) == 1, done.stderr)


@test
def what_is_wrong_is_one_error():
    for text in ("x", "", "1-", "-1", "3-2", "0,", "0,0", "1-2,2", "99999", "0-99"):
        refused(("--cores", "list"), "--cores", text)
    refused(("core 1000",), "--cores", "1000")
    refused(("2 threads", "cores for 1"), "--threads", "2", "--cores", str(CORES[0]))
    refused(("--cores", "list"), "--cores", "x", "--clock", "paced", verb="run")
    refused(("need --clock paced",), "--realtime", "3", verb="run")
    for verb in ("serve", "run", "bench"):
        refused(("stack is limited to 1024 KiB", "ulimit -s", "LimitSTACK"), verb=verb, under=["prlimit", "--stack=1048576"])
    without = ["setpriv", "--bounding-set", "-sys_nice,-ipc_lock", "--inh-caps", "-sys_nice,-ipc_lock"]
    if os.getuid() or subprocess.run([*without, "true"], capture_output=True).returncode:
        return
    refused(("rtprio", "LimitRTPRIO=8"), "--realtime", "7", under=["prlimit", "--rtprio=0", *without])
    refused(("--lock-memory", "LimitMEMLOCK"), "--lock-memory", under=["prlimit", "--memlock=65536", *without])


@test
def paced_frames_too():
    if not allowed():
        return "SCHED_FIFO is not to be had"
    out = os.path.join(BOX, "ticks.jsonl")
    p = subprocess.run([serve_harness.PROGRAM, "run", DEMO, "--random-inputs", "1", "-n", "3", "--clock", "paced", "--threads", "1", "--realtime", "5",
                        "--cores", str(CORES[0]), *(["--lock-memory"] if may_lock() else []), "--out", out], capture_output=True, text=True, timeout=60 * SLOW)
    check(p.returncode == 0 and len(open(out).readlines()) == 3, p.returncode, p.stderr)


if __name__ == "__main__":
    sys.exit(main())
