"""python.py - the Python package on the bundled robot. usage: python.py PROGRAM ROOT CHECKS_BEFORE

Actions must have the bytes that `tectum run` prints for the same inputs. What is refused must be
the exception that the documentation names, and what is closed must stay closed.
"""

import asyncio
import gc
import inspect
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np

import tectum

PROGRAM, ROOT = sys.argv[1:3]
count, failed = int(sys.argv[3]), 0
EPISODES = os.path.join(ROOT, "pipelines/checkpoints/metaworld/episodes")


def check(text, holds, said=""):
    global count, failed
    count += 1
    print(f"{'ok' if holds else 'not ok'} {count} - {text}", flush=True)
    if not holds:
        failed += 1
        print(f"# {said}", file=sys.stderr)


def raises(text, kind, function, *words):
    """function raises kind, exactly, and its message has these words."""
    try:
        said = f"nothing raised: {function()!r}"
        holds = False
    except Exception as error:
        said = repr(error)
        holds = type(error) is kind and all(word in str(error) for word in words)
    check(text, holds, said)


def tensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    types = {"U8": np.uint8, "F32": np.float32, "F64": np.float64}
    return {
        name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], types[t["dtype"]])
        .reshape(t["shape"])
        for name, t in header.items() if name != "__metadata__"
    }


INPUTS = tensors(os.path.join(EPISODES, "inputs.safetensors"))


def observation(i, episode="button", prompt="press the button"):
    return {
        "observation/image": INPUTS[f"{episode}.image"][i],
        "observation/wrist_image": INPUTS[f"{episode}.wrist_image"][i],
        "observation/state": INPUTS[f"{episode}.state"][i],
        "prompt": prompt,
    }


def run(frames, *more):
    command = [PROGRAM, "run", os.path.join(ROOT, "pipelines/demo_metaworld.lua"), "--root", ROOT,
               "--inputs", os.path.join(EPISODES, "button.jsonl"), "-n", str(frames),
               "--format", "json", "--seed", "7", "--threads", "1", "--drain", *more]
    said = subprocess.run(command, capture_output=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


def open_demo(**more):
    return tectum.open("demo_metaworld", **({"seed": 7, "threads": 1} | more))


def test_same_bytes():
    lines = run(4)
    texts = {r["request"]: "" for line in lines for r in line["text"].get("talk", [])}
    for line in lines:
        for r in line["text"].get("talk", []):
            texts[r["request"]] += r["text"]
    before = INPUTS["button.image"].copy()
    with open_demo() as robot:
        results = [robot.infer(observation(i), text=True) for i in range(4)]
        check("nodes, rows and columns", (robot.nodes, robot.rows, robot.columns, robot.sessions)
              == (("act",), 16, 4, 1))
    wanted = [np.array(line["actions"]["act"]) for line in lines[:4]]
    check("actions have the bytes that the program prints", all(
        w.shape == (16, 4) and r.actions.tobytes() == w.tobytes() for w, r in zip(wanted, results)))
    check("frames differ", wanted[0].tobytes() != wanted[1].tobytes())
    check("texts are those of the program", [str(r.text) for r in results]
          == [texts[i] for i in range(4)] and results[0].text.text != "", [r.text for r in results])
    first = results[0]
    check("a result says what it is", list(first.chunks) == ["act"] and first.observation == 0
          and first.chunks["act"].observation == 0 and first.age_ns > 0 and not first.missed
          and first.text.reason == "eos" and first.chunks["act"].reason == "", first)
    check("inputs are left alone", (INPUTS["button.image"] == before).all())
    check("actions outlive the pipeline, and can be written to", first.actions.flags.writeable
          and first.actions.dtype == np.float64 and np.isfinite(first.actions).all())
    exported = np.from_dlpack(first.actions)
    check("DLPack gives the same memory", exported.tobytes() == first.actions.tobytes()
          and np.shares_memory(exported, first.actions))
    check("results share no memory", not np.shares_memory(first.actions, results[1].actions))
    with open_demo(seed=8) as robot:
        check("another seed, other actions",
              robot.infer(observation(0)).actions.tobytes() != wanted[0].tobytes())


class Exported:
    """An array that is known by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_inputs(robot):
    good = observation(0)
    image = good["observation/image"]

    def refused(text, kind, change, *words):
        bad = dict(good)
        bad.update(change)
        raises(text, kind, lambda: robot.infer({k: v for k, v in bad.items() if v is not None}), *words)

    refused("a missing input", tectum.NotFoundError, {"prompt": None}, "prompt")
    refused("an unknown input", tectum.NotFoundError, {"camera": image}, "camera")
    refused("a wrong shape", tectum.ShapeError, {"observation/state": np.zeros(3, np.float32)}, "state")
    refused("a wrong dtype", tectum.ShapeError, {"observation/image": image.astype(np.int64)},
            "observation/image", "astype", "uint8")
    refused("half floats are not widened", tectum.ShapeError,
            {"observation/state": np.zeros(4, np.float16)}, "state")
    refused("the other byte order", tectum.ShapeError,
            {"observation/state": np.zeros(4, ">f4")}, "byte order")
    refused("Fortran order", tectum.ShapeError, {"observation/image": np.asfortranarray(image)},
            "ascontiguousarray")
    refused("a view with steps", tectum.ShapeError, {"observation/image": image[:, ::2]}, "contiguous")
    refused("a list", tectum.ShapeError, {"observation/state": [0.0] * 4}, "asarray")
    refused("five axes", tectum.ShapeError, {"observation/image": image.reshape(1, 1, 64, 64, 3)}, "axes")
    refused("half a character", tectum.MalformedError, {"prompt": "\ud800"}, "prompt")
    refused("a NUL in a name", tectum.InvalidError, {"a\0b": 1.0}, "NUL")
    refused("None as an array", tectum.ShapeError, {"observation/state": object()}, "object")
    raises("no dict", tectum.InvalidError, lambda: robot.infer([image]), "dict")
    raises("an empty observation", tectum.InvalidError, lambda: robot.infer({}))
    first = robot.infer(good)
    read_only = image.copy()
    read_only.flags.writeable = False
    second = robot.infer(good | {"observation/image": Exported(read_only.copy())})
    check("after refusals it goes on", (first.observation, second.observation) == (0, 1))


def test_errors():
    raises("no such pipeline", tectum.IoError, lambda: tectum.open("no_such"), "no_such")
    raises("a NUL in a path", tectum.InvalidError, lambda: tectum.open("a\0b"))
    raises("too large a seed", tectum.InvalidError, lambda: open_demo(seed=2**64))
    raises("negative threads", tectum.InvalidError, lambda: open_demo(threads=-1), "threads")
    try:
        open_demo(set={"nodes.act.deadline.ms": 120})
        error = None
    except tectum.MalformedError as caught:
        error = caught
    check("a mistake in a pipeline has its place", error is not None and error.place is not None
          and error.place.line == 1 and error.place.column == 23 and "120 ms" in str(error), repr(error))
    check("an error has its status", error.status is tectum.Status.MALFORMED
          and isinstance(error, ValueError) and isinstance(error, tectum.Error))
    again = pickle.loads(pickle.dumps(error))
    check("an error can be sent to another process", type(again) is type(error)
          and str(again) == str(error) and again.place == error.place)
    with open(os.path.join(ROOT, "tectum.h"), encoding="utf-8") as header:
        wanted = dict(re.findall(r"^    TECTUM_([A-Z_]+) = (\d+)", header.read().split("enum tectum_source")[0], re.M))
    wanted.pop("OK")
    have = {status.name: str(int(status)) for status in tectum.Status}
    check("statuses are those of tectum.h", have == wanted, (have, wanted))
    kinds = {k.status: k for k in vars(tectum).values() if inspect.isclass(k)
             and issubclass(k, tectum.Error) and k not in (tectum.Error, tectum.ClosedError)}
    check("each status has its class", set(kinds) == set(tectum.Status), kinds)


def test_threads(robot):
    alone = robot.infer(observation(0), timeout=30)
    results, wrong = [], []

    def work(i):
        try:
            results.append([robot.infer(observation(j)) for j in range(5)])
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = sorted(r.observation for rs in results for r in rs)
    check("two threads have the actions of their own observations", not wrong
          and numbers == list(range(1, 11))
          and all(r.chunks["act"].observation == r.observation for rs in results for r in rs), wrong)
    check("actions of the first are left alone", np.isfinite(alone.actions).all())

    async def gather():
        beat = 0
        task = asyncio.gather(*(robot.infer_async(observation(j)) for j in range(3)))
        while not task.done():
            beat += 1
            await asyncio.sleep(0.001)
        return beat, await task

    beat, three = asyncio.run(gather())
    check("await gives results, and the loop goes on meanwhile",
          [r.observation for r in three] == [11, 12, 13] and beat > 3, (beat, three))


def test_handout_and_texts(robot):
    number = robot.submit(observation(0), captured_ns=tectum.now())
    handed = robot.handout(number)
    check("a tick is handed its own actions", handed.source == "fresh" and not handed.missed
          and handed.observation == number and handed.actions.shape == (8, 4)
          and 0 < handed.age_ns < 90_000_000, handed)
    blind = robot.handout(None, deadline_ns=tectum.now())
    check("a tick without observation is handed a substitute", blind.missed
          and blind.source == "held" and len(blind.actions) == 8, blind)
    raises("no such observation", tectum.InvalidError, lambda: robot.handout(99))
    raises("no such node", tectum.NotFoundError, lambda: robot.wait(0, node="no"), "node")
    raises("a wait ends", tectum.TimeError, lambda: robot.wait(99, timeout=0.12))
    ticket = robot.ask("talk", max_tokens=2)
    number = robot.submit(observation(1))
    outcome = robot.asked(ticket, timeout=20)
    pieces = list(robot.texts(outcome.request, timeout=20))
    check("an asked text, piece by piece", not outcome.refused and pieces[-1].ends
          and pieces[-1].reason in ("length", "eos") and 1 <= sum(p.token is not None for p in pieces) <= 2
          and {(p.node, p.observation) for p in pieces} == {("talk", number)}, (outcome, pieces))
    rest = list(robot.texts(timeout=0.3))
    check("texts end when none comes", rest and all(p.request != outcome.request for p in rest), rest)
    check("a cancel of what is gone is refused",
          robot.asked(robot.cancel(outcome.request), timeout=20).refused)
    raises("no score node", tectum.NotFoundError, lambda: robot.ranking(timeout=1))
    robot.reset()


def test_sessions():
    with open_demo() as robot:
        alone = [robot.infer(observation(i)).actions.tobytes() for i in range(3)]
    with open_demo(set={"frame.sessions": 2, "frame.gather_ms": 5}) as pipeline:
        both = [pipeline.robot(0), pipeline.robot(1)]
        got = [[], []]
        threads = [threading.Thread(target=lambda i=i: got[i].extend(
            both[i].infer(observation(j)) for j in range(3))) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check("two robots have what each has alone", pipeline.sessions == 2
              and [[r.actions.tobytes() for r in rs] for rs in got] == [alone, alone], got)
        check("a robot is the same one each time", both[0] is pipeline and pipeline.robot(1) is both[1])
        raises("no third robot", tectum.NotFoundError, lambda: pipeline.robot(2), "2")
    raises("a robot ends with its pipeline", tectum.ClosedError, lambda: both[1].infer(observation(0)))


def test_several_pipelines():
    def act(robot):
        return [robot.infer(observation(i)).actions.tobytes() for i in range(3)]

    seeds, alone, together = (7, 8), [], {}
    for seed in seeds:
        with open_demo(seed=seed) as robot:
            alone.append(act(robot))

    def work(i):
        with open_demo(seed=seeds[i % 2]) as robot:
            together[i] = act(robot)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("pipelines that threads open and close have what each has alone", alone[0] != alone[1]
          and [together.get(i) for i in range(4)] == [alone[0], alone[1]] * 2, sorted(together))
    with open_demo(seed=seeds[0]) as one, open_demo(seed=seeds[1]) as other:
        both = [[], []]
        for i in range(3):
            both[0].append(one.infer(observation(i)).actions.tobytes())
            both[1].append(other.infer(observation(i)).actions.tobytes())
        check("two pipelines take turns", both == alone)
        other.close()
        check("one goes on when the other is closed", np.isfinite(one.infer(observation(3)).actions).all())


def running():
    """How many threads there are; one that was waited for is listed for a moment longer."""
    least = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        time.sleep(0.01)
        least = min(least, len(os.listdir("/proc/self/task")))
    return least


def test_close():
    before = running()
    robot = open_demo()
    caught = []

    def wait():
        try:
            robot.wait(5)
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    robot.close()
    thread.join(10)
    check("close ends a call that waits", len(caught) == 1 and type(caught[0]) is tectum.ClosedError, caught)
    robot.close()
    check("a closed pipeline says so", robot.closed and "closed" in repr(robot))
    for name, call in {
        "infer": lambda: robot.infer(observation(0)), "submit": lambda: robot.submit(observation(0)),
        "wait": lambda: robot.wait(0), "handout": lambda: robot.handout(0), "ask": robot.ask,
        "cancel": lambda: robot.cancel(0), "asked": lambda: robot.asked(0), "read": robot.read,
        "texts": lambda: next(robot.texts()), "reset": robot.reset, "ranking": robot.ranking,
    }.items():
        raises(f"{name} after close", tectum.ClosedError, call, "closed")
    gc.disable()
    robot = open_demo()
    gone = weakref.ref(robot)
    result = robot.infer(observation(0))
    opened = running()
    del robot
    check("a pipeline that is forgotten is closed", gone() is None and opened > before
          and running() == before and np.isfinite(result.actions).all(), (before, opened, running()))
    gc.enable()


def test_process():
    script = f"import sys, numpy, tectum\nrobot = tectum.open({'demo_metaworld'!r}, threads=1)\n"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30)
    check("a process ends with a pipeline open", said.returncode == 0 and not said.stderr, said)
    fork = script + ("import os\nchild = os.fork()\nif child == 0:\n    try:\n        robot.submit({'prompt': 'x'})\n"
                     "    except tectum.ClosedError as error:\n        assert 'forked' in str(error)\n"
                     "        robot.close()\n        os._exit(3)\n    os._exit(4)\n"
                     "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n")
    said = subprocess.run([sys.executable, "-c", fork], capture_output=True, timeout=30)
    check("a fork is told that the pipeline is not there", said.returncode == 3, said)
    child = subprocess.Popen([sys.executable, "-c", script + "print('open', flush=True)\nrobot.wait(9)\n"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    try:
        _, said = child.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        child.kill()
        said = b"it did not end"
    check("Ctrl-C ends a wait", b"KeyboardInterrupt" in said, said)


def test_words():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"VERSION ([0-9.]+) LANGUAGES", file.read())[1]
    check("the version is the project's", tectum.__version__ == version, tectum.__version__)
    bare, untyped = [], []
    for kind in (tectum.Pipeline, tectum.Robot, tectum.Result, tectum.Chunk, tectum.Handed, tectum):
        for name, member in vars(kind).items():
            if name.startswith("_") or not inspect.isfunction(member) or member.__module__.split(".")[0] != "tectum":
                continue
            if name in getattr(tectum, "__all__", []) or kind is not tectum:
                bare += [] if member.__doc__ else [name]
                untyped += [] if "return" in member.__annotations__ else [name]
    check("public functions have a docstring and types", not bare and not untyped, (bare, untyped))
    check("names that are offered are there", all(hasattr(tectum, name) for name in tectum.__all__))


test_same_bytes()
with open_demo() as opened:
    test_inputs(opened)
test_errors()
with open_demo() as opened:
    test_threads(opened)
with open_demo() as opened:
    test_handout_and_texts(opened)
test_sessions()
test_several_pipelines()
test_close()
test_process()
test_words()
print(f"1..{count}")
sys.exit(failed > 0)
