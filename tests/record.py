"""record.py - recordings from the outside: what the file holds, by a reader of its own and by the
mcap package where it is installed; replay, explain and trace of it; cuts, full disks, misses."""

import fcntl
import glob
import html
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.error
import urllib.request

from mcap_file import Recording, rewritten
from serve_client import Array, Socket, pack, unpack
from serve_harness import OBSERVATION, PROGRAM, SLOW, Server, check, main, test

WORK = sys.argv[2]
DEMO = "pipelines/demo_metaworld.lua"
INPUTS = "pipelines/checkpoints/metaworld/episodes/button.jsonl"
FILE = WORK + "/demo.mcap"


def tectum(*arguments, code=0, **more):
    p = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, **more)
    check(code is None or p.returncode == code, arguments, p.returncode, p.stdout[-300:], p.stderr[-600:])
    p.stderr = "".join(x for x in p.stderr.splitlines(True) if "no CUDA device" not in x)  # of a build with CUDA
    return p


def varints(data):
    """Fields of a protobuf message: (number, value)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 1:
            yield tag >> 3, data[at:at + 8]
            at += 8
        else:
            check(tag & 7 == 2, "a wire type")
            n = varint()
            yield tag >> 3, data[at:at + n]
            at += n
    check(at == len(data))


@test
def a_run_is_recorded_whole():
    plain = tectum("run", DEMO, "--inputs", INPUTS, "--format", "json").stdout
    p = tectum("run", DEMO, "--inputs", INPUTS, "--record", FILE, "--format", "json").stdout
    lines = [json.loads(x) for x in p.splitlines()]
    without = [json.loads(x) for x in plain.splitlines()]
    check([x["actions"] for x in lines] == [x["actions"] for x in without], "recording changes bytes")
    r = Recording(FILE)
    check([x["actions"] for x in r.of("/tectum/actions/act")] == [x["actions"]["act"] for x in lines])
    check([x["frame"] for x in r.of("/tectum/frames")] == [x["frame"] for x in lines])
    check(len(r.of("/images/observation/image")) == len(lines))
    check(all(x["text"] == "press the button" for x in r.of("/inputs/prompt")))
    given = [json.loads(x) for x in open(INPUTS)]
    image = r.of("/images/observation/image")[0]
    check(len(image) > 64 * 64 * 3 and b"rgb8\0" in image[:64] and len(given) >= len(lines))
    about = r.of("/tectum/recording")[0]
    check(about["pipeline"] == "demo_metaworld" and about["policy"] == "oxygen" and about["hash"] and len(about["weights"]) == 32)
    check(json.loads(r.attachments["pipeline.json"])["name"] == "demo_metaworld")
    check(r.attachments["policy.lua"] == open("policies/oxygen.lua", "rb").read())
    texts = {}
    for x in r.of("/tectum/text/talk"):
        texts.setdefault(x["request"], []).append(x)
    said = {}
    for line in lines:
        for t in line["text"]["talk"]:
            said.setdefault(t["request"], []).extend(t["tokens"])
    for request, tokens in said.items():
        check([x["token"] for x in texts[request] if not x["done"]] == tokens, request)


@test
def the_verb_runs_and_records():
    folder = WORK + "/verb"
    os.mkdir(folder)
    pipeline, inputs = os.path.abspath(DEMO), os.path.abspath(INPUTS)
    p = tectum("record", pipeline, "--inputs", inputs, "--format", "json", cwd=folder)
    check(os.listdir(folder) == ["demo_metaworld.mcap"] and "demo_metaworld.mcap" in p.stderr, os.listdir(folder), p.stderr)
    q = tectum("run", pipeline, "--inputs", inputs, "--format", "json")
    check([json.loads(x)["actions"] for x in p.stdout.splitlines()]
          == [json.loads(x)["actions"] for x in q.stdout.splitlines()], p.stdout[-300:])
    tectum("replay", folder + "/demo_metaworld.mcap")
    before = open(folder + "/demo_metaworld.mcap", "rb").read()
    p = tectum("record", pipeline, "--inputs", inputs, code=2, cwd=folder)
    check("is there already" in p.stderr and open(folder + "/demo_metaworld.mcap", "rb").read() == before, p.stderr)
    tectum("record", pipeline, "--random-inputs", "1", "--record", folder + "/own.mcap", cwd=folder)
    tectum("replay", folder + "/own.mcap")
    tectum("record", folder + "/none.lua", code=3, cwd=folder)
    check(sorted(os.listdir(folder)) == ["demo_metaworld.mcap", "own.mcap"], os.listdir(folder))


@test
def the_mcap_package_reads_it():
    try:
        from mcap.reader import make_reader
    except ImportError:
        print("# the mcap package is not installed: its reader is not asked")
        return
    with open(FILE, "rb") as f:
        reader = make_reader(f, validate_crcs=True)
        summary = reader.get_summary()
        messages = sum(1 for _ in reader.iter_messages())
        check(summary.statistics.message_count == messages and messages > 50)
        check({a.name for a in reader.iter_attachments()} == {"pipeline.json", "policy.lua"})


@test
def replay_gives_the_same_bytes():
    j = json.loads(tectum("replay", FILE, "--format", "json").stdout)
    check(j["actions"]["differ"] == j["actions"]["missing"] == j["texts"]["differ"] == 0, j)
    check(j["frames"] == j["actions"]["equal"] > 0 and j["texts"]["equal"] > 0, j)
    lines = tectum("replay", FILE, "--policy", "isolated", "--diff", "--format", "json").stdout
    lines = [json.loads(x) for x in lines.splitlines()]
    check(lines[-1]["plans"]["differ"] == len(lines) - 1 > 0, lines[-1])
    check(all(x["actions_equal"] and x["was"] != x["is"] for x in lines[:-1]))
    check(lines[-1]["actions"]["differ"] == 0 and lines[-1]["texts"]["differ"] == 0, lines[-1])


@test
def a_policy_that_was_asked_for_is_replayed_without_the_pipelines_parameters():
    path = WORK + "/asked.mcap"
    tectum("run", DEMO, "--random-inputs", "1", "-n", "3", "--policy", "chaos", "--record", path)
    j = json.loads(tectum("replay", path, "--format", "json").stdout)
    check(j["actions"]["equal"] == 3 and j["plans"]["equal"] == 3, j)


def costs_file(**us):
    """A table in which each step of language, and each launch of the others, takes so long."""
    path = WORK + "/made.costs"
    rows = [{"node": node, "point": {"batch": b} if node == "talk" else {}, "n": 9, "min": x, "p50": x, "p99": x,
             "p999": x, "max": x} for node, x in us.items() for b in ((1, 3, 5, 8) if node == "talk" else (0, ))]
    with open(path, "w") as f:
        json.dump({"schema": 1, "unit": "us", "variants": rows}, f)
    return path


def simulate(*arguments, path=FILE):
    lines = tectum("replay", path, "--sim", "--format", "json", *arguments).stdout.splitlines()
    return json.loads(lines[-1]), [json.loads(x) for x in lines[:-1]]


@test
def a_recording_is_simulated():
    frames = Recording(FILE).of("/tectum/frames")
    j, lines = simulate("--diff")
    check(j["plans"] == {"equal": len(frames), "differ": 0, "first": None} and not lines, j, lines)
    check(j["simulated"]["tokens"] == sum(f["tokens"] for f in frames), "texts are as long as they were", j)
    check(j["recorded"]["frames"] == len(frames) and j["costs"] == "recorded", j)
    check((j, lines) == simulate("--diff"), "a simulation gives the same again")
    # what another policy decides is what it decides when it runs: this one does not look at costs
    j, lines = simulate("--policy", "isolated", "--diff")
    ran = tectum("replay", FILE, "--policy", "isolated", "--diff", "--format", "json").stdout.splitlines()
    check([x["is"] for x in lines] == [json.loads(x)["is"] for x in ran[:-1]] != [], lines)
    check(j["was_policy"] == "oxygen" and j["policy"] == "isolated", j)
    check(j["plans"]["first"]["frame"] == lines[0]["frame"] and set(lines[0]) >= {"was_us", "is_us", "is_missed"}, j)
    # times are those of the table, to the microsecond
    j, _ = simulate("--costs", costs_file(see=10000, act=20000, talk=1000))
    took = []
    for f in frames:
        late = json.loads(tectum("explain", FILE, "--frame", str(f["frame"]), "--format", "json").stdout)["late_us"]
        took.append(late + 30000 + sum(1000 * x["k"] for x in f["launches"] if x["node"] == "talk"))
    us = j["simulated"]["frame_us"]
    check(j["plans"]["differ"] == 0 and abs(us["max"] - max(took)) <= 1 and abs(us["min"] - min(took)) <= 1, us, took)
    check("plans" in tectum("replay", FILE, "--sim").stdout)
    for wrong in (["--html", "x.html"], ["--speed", "1"], ["--speed", "1", "--diff", "--html", "x.html"]):
        tectum("replay", FILE, "--sim", *wrong, code=2)


@test
def ticks_and_requests_are_simulated():
    path = WORK + "/paced.mcap"
    tectum("run", DEMO, "--inputs", INPUTS, "--clock", "paced", "--set", "frame.period_ms=200", "--set",
           "nodes.act.deadline.ms=190", "--record", path)
    frames = Recording(path).of("/tectum/frames")
    check("from 0 to %d" % frames[-1]["frame"] in tectum("explain", path, "--frame", "99999", code=3).stderr)
    j, _ = simulate("--costs", costs_file(see=1000, act=1000, talk=10), path=path)
    ticks = frames[-1]["frame"] - frames[0]["frame"] + 1  # those that were skipped have room now
    check(j["frames"] == ticks and j["more"] == ticks - len(frames) and j["skipped"] == j["simulated"]["missed"] == 0, j)
    j, _ = simulate("--costs", costs_file(see=100000, act=340000, talk=10), path=path)  # two periods and more
    check(j["skipped"] > 0 and j["frames"] + j["skipped"] == ticks and j["simulated"]["causes"]["plan"] > 0, j)
    path = WORK + "/served.mcap"
    s = Server(DEMO, "--late-ok", "--record", path)
    c = s.connect()
    for tasks in (["action"], ["action", "text"], ["action"]):
        c.infer({**OBSERVATION, "tectum": {"tasks": tasks}})
    check(s.end()[0] == 0)
    j, _ = simulate("--costs", costs_file(see=1000, act=1000, talk=10), path=path)
    check(j["plans"]["equal"] + j["plans"]["differ"] == j["recorded"]["frames"] == 3 <= j["frames"], j)
    check(j["simulated"]["finished"] > 0, "language goes on between requests", j)
    # as a robot of another rate would have sent them, under other deadlines than its requests had
    costs = ["--costs", costs_file(see=10000, act=20000, talk=10)]
    for every, due, missed in ((1000, 40, 0), (1000, 25, 3), (50, 40, 0), (31, 30.5, 0)):
        j, _ = simulate(*costs, "--every", str(every), "--set", f"frame.period_ms={every}", "--set", f"nodes.act.deadline.ms={due}", path=path)
        us = j["simulated"]["span_us"]
        check(j["simulated"]["missed"] == missed and j["skipped"] == 0 and j["recorded"]["frames"] == 3, every, j)
        check(2000 * every + 30000 <= us <= 2000 * every + 90000, every, us)
    j, _ = simulate(*costs, "--every", "20", "--set", "frame.period_ms=20", "--set", "nodes.act.deadline.ms=19", path=path)
    check(j["simulated"]["missed"] + j["skipped"] == 3, "each takes longer than its period", j)
    for wrong in (["--every", "20"], ["--sim", "--every", "-1"]):
        tectum("replay", path, *wrong, code=2)
    tectum("replay", FILE, "--sim", "--every", "20", code=2)  # its frames had no clock
    small = ["--random-weights", "1", "--size", "tiny", "--random-inputs", "3"]
    tectum("run", DEMO, *small, "--frames", "5", "--set", "frame.sessions=2", "--record", path)
    j, _ = simulate(path=path)
    check(j["plans"]["equal"] == 10 and j["plans"]["differ"] == 0, j)
    tectum("run", "pipelines/openvla_ring.lua", *small, "--frames", "9", "--record", path)
    check("--costs" in tectum("replay", path, "--sim", code=3).stderr)


@test
def texts_of_made_up_ticks_are_counted_by_observation():
    path = WORK + "/every.mcap"
    small = ["--random-weights", "1", "--size", "tiny", "--random-inputs", "3"]
    for ms in (1, 2, 4, 8, 16, 32):  # some ticks find a frame at work, and not all do: as fast as the machine is now
        tectum("run", DEMO, *small, "--frames", "60", "--clock", "paced", "--set", f"frame.period_ms={ms}", "--set",
               f"nodes.act.deadline.ms={0.9 * ms}", "--set", "nodes.talk.spawn=every(2)", "--set", "nodes.talk.max_tokens=1", "--record", path)
        frames = [f["frame"] for f in Recording(path).of("/tectum/frames")]
        ticks = frames[-1] - frames[0] + 1
        if ticks > 9 and ticks > len(frames):
            break
    check(ticks > 9 and ticks > len(frames), ticks, len(frames))
    for act, each in ((100 * ms, 1), (1100 * ms, 2), (2100 * ms, 3)):  # every tick has a frame, or each second or third one
        j, _ = simulate("--costs", costs_file(see=50, act=act, talk=0), path=path)
        check(j["frames"] > 2 and j["skipped"] >= j["frames"] * (each - 1) - each, act, j)
        check(j["simulated"]["finished"] == (j["frames"] + 1) // 2, "a text of one token at each second observation", act, j)
    # a line without an observation is a frame that counts for no text
    with open(WORK + "/gaps.jsonl", "w") as f:
        lines = open(INPUTS).read().replace("inputs.safetensors", os.path.abspath(os.path.dirname(INPUTS)) + "/inputs.safetensors").splitlines()
        f.write("\n".join([lines[0], "null", lines[1], "null", lines[2]]) + "\n")
    out = tectum("run", DEMO, "--inputs", WORK + "/gaps.jsonl", "--set", "nodes.talk.spawn=every(2)", "--drain", "--format", "json").stdout
    texts = {t["request"] for line in out.splitlines() for t in json.loads(line).get("text", {}).get("talk", [])}
    check(len(texts) == 2, "at the first and the third observation", texts)


@test
def other_weights_differ():
    small = ["--random-weights", "1", "--size", "tiny"]
    path = WORK + "/random.mcap"
    tectum("run", DEMO, *small, "--random-inputs", "3", "--frames", "4", "--record", path)
    check(json.loads(tectum("replay", path, "--format", "json").stdout)["actions"]["equal"] == 4)
    j = json.loads(tectum("replay", path, "--random-weights", "2", "--size", "tiny", "--format",
                          "json", code=1).stdout)
    check(j["actions"]["differ"] == 4, j)
    other = "the weights are others than the recording's"
    said = tectum("replay", path, "--random-weights", "2", "--size", "tiny", code=1).stderr
    check(f"{other} (random of seed 2, tiny, random of seed 1, tiny)" in said, said)
    said = tectum("replay", path, "--random-weights", "2", code=1).stderr
    check(f"{other} (random of seed 2, tiny, random of seed 1, tiny)" in said, "the recording's size, where none is given", said)
    check(other not in tectum("replay", path).stderr)
    path, memory = WORK + "/trained.mcap", "pipelines/demo_memory.lua"
    tectum("run", memory, "--input", "goal=find:cup", "--set", f"resources.mem.store={WORK}/trained.mem", "--record", path)
    check(other not in tectum("replay", path).stderr)
    said = tectum("replay", path, "--random-weights", "1", "--size", "tiny", code=1).stderr
    check(re.search(re.escape(other) + r" \(random of seed 1, tiny, [0-9a-f]{32}\)", said), said)


@test
def a_replay_says_what_it_has_otherwise():
    path = WORK + "/robot.mcap"
    tectum("run", DEMO, "--random-inputs", "1", "--frames", "3", "--record", path)
    without = "tectum replay: the recording was made without --set "
    check(tectum("replay", path).stderr == "")
    said = tectum("replay", path, "--set", "nodes.act.steps=2", "--set", "guard.soft_us=90", code=1).stderr
    check(said == f"{without}nodes.act.steps=2\n{without}guard.soft_us=90\n", said)
    check(tectum("replay", path, "--set", "guard.soft_us=90").stderr == "", "nothing differs")
    tectum("run", DEMO, "--random-inputs", "1", "--frames", "3", "--set", "nodes.act.steps=2", "--record", path)
    said = tectum("replay", path, "--set", "nodes.act.steps=2", "--set", "nodes.act.steps=3", code=1).stderr
    check(said == f"{without}nodes.act.steps=3\n", said)
    for size, why in (["--size", "tiny"], "the picture is 64 high"), ([], "buffer 'chunk' must be"):
        said = tectum("replay", path, "--random-weights", "1", *size, code=3).stderr
        check(said.startswith("tectum replay: the weights are others than the recording's (random of seed 1, "), said)
        check(why in said and said.count("\n") == 1, said)


@test
def the_file_of_a_recording_is_that_of_its_option():
    path = WORK + "/meant.mcap"
    for verb in "run", "record":
        said = tectum(verb, DEMO, "--random-inputs", "1", "-o", path, code=2).stderr
        check(said == f"tectum {verb}: --out {path}: it has JSON lines, and is no recording; --record {path} is one\n", said)
        check(not os.path.exists(path))


@test
def paced_frames_and_sessions_are_replayed():
    path = WORK + "/paced.mcap"
    tectum("run", DEMO, "--inputs", INPUTS, "--clock", "paced", "--set", "frame.period_ms=60", "--set", "nodes.act.deadline.ms=50",
           "--record", path)
    j = json.loads(tectum("replay", path, "--format", "json").stdout)
    check(j["actions"]["differ"] == j["actions"]["missing"] == 0 and j["frames"] > 0, j)
    tectum("run", DEMO, "--random-weights", "1", "--size", "tiny", "--random-inputs", "3", "--frames",
           "5", "--set", "frame.sessions=2", "--record", path)
    j = json.loads(tectum("replay", path, "--format", "json").stdout)
    check(j["actions"] == {"equal": 10, "differ": 0, "missing": 0}, j)
    told = [(f["session"], [x[0] for x in f["launches"]]) for f in page_data(path)["frames"]]
    check(len(told) == 10 and all(told[i][1] and told[i][1] == told[i + 1][1] for i in range(0, 10, 2)), told)
    shown = tectum("explain", path, "--frame", "3").stdout
    check(all("  %s " % node in shown for node in ("see", "act", "talk")), shown)


@test
def a_rate_of_actions_is_replayed():
    path = WORK + "/rate.mcap"
    tectum("run", "tests/pipelines/graphs/action_rate.lua", "--random-weights", "1", "--size", "tiny", "--random-inputs", "3",
           "--frames", "4", "--clock", "paced", "--actions", "3", "--record", path)
    j = json.loads(tectum("replay", path, "--format", "json").stdout)
    check(j["actions"]["equal"] == j["frames"] > 0 and j["actions"]["differ"] == j["actions"]["missing"] == 0, j)
    s = Server(DEMO, "--set", "nodes.act.spawn=every(2)", "--late-ok", "--record", path)
    for _ in range(2):  # the second client's first observation begins anew
        c = s.connect()
        for _ in range(3):
            c.infer({**OBSERVATION, "tectum": {"tasks": ["action", "text"]}})
        c.close()
    check(s.end()[0] == 0)
    seen = [x["seen"] for x in Recording(path).of("/tectum/actions/act")]
    check(seen == [0, 0, 2, 3, 3, 5], "frames of language alone are no observations", seen)
    j = json.loads(tectum("replay", path, "--format", "json").stdout)
    check(j["actions"] == {"equal": 6, "differ": 0, "missing": 0}, j)
    j, lines = simulate("--diff", "--costs", costs_file(see=1000, act=1000, talk=10), path=path)
    acts = [["act" in [x[0] for x in line[side]] for side in ("was", "is")] for line in lines]
    check(all(was == now for was, now in acts), "a client's own chunk goes on, no other's", lines)


@test
def a_cut_recording_shows_what_is_whole():
    whole = open(FILE, "rb").read()
    frames = json.loads(tectum("explain", FILE, "--format", "json").stdout)["frames"]
    step = max(1, len(whole) // 40)
    for n in [0, 1, 7, 8, 9, 100, *range(step, len(whole), step), len(whole) - 1]:
        path = WORK + "/cut.mcap"
        open(path, "wb").write(whole[:n])
        for verb in ["explain", "trace"]:
            p = subprocess.run([PROGRAM, verb, path], capture_output=True)
            check(p.returncode in (0, 3), verb, n, p.returncode, p.stderr)
            check(p.returncode == 0 or len(p.stderr.splitlines()) == 1, n, p.stderr)
    open(path, "wb").write(whole[:len(whole) * 3 // 4])
    p = subprocess.run([PROGRAM, "replay", path, "--format", "json"], capture_output=True, text=True)
    check(p.returncode in (0, 1, 3), p.returncode, p.stderr)
    check("byte" in p.stderr or p.returncode == 3, p.stderr)
    check(frames > 0)


@test
def ticks_without_a_frame_are_recorded():
    path = WORK + "/skipped.mcap"
    p = tectum("run", DEMO, "--inputs", INPUTS, "--clock", "paced", "--set", "frame.period_ms=1", "--set",
               "nodes.act.deadline.ms=1", "--record", path)
    skipped = int(re.search(r", (\d+) skipped,", p.stderr).group(1))
    told = Recording(path).of("/tectum/not_begun")
    check(told and told[-1]["number"] == skipped == sum(told[-1]["causes"].values()), told, p.stderr)
    check("\nmissed   %d before a frame began for them: " % skipped in tectum("replay", path).stdout)


@test
def what_is_damaged_is_said_with_its_place():
    whole, chunks, at = bytearray(open(FILE, "rb").read()), [], 8
    while at + 9 < len(whole):
        chunks += [at] if whole[at] == 6 else []
        at += 9 + int.from_bytes(whole[at + 1:at + 9], "little")
    path = WORK + "/damaged.mcap"
    for nth, read, missing in ((0, 0, "no message /tectum/recording"), (1, 1, "there is no frame in what can be read")):
        at = chunks[nth]
        flipped = whole[:at + 300] + bytes([whole[at + 300] ^ 255]) + whole[at + 301:]
        for damaged, words in ((flipped, "a chunk's checksum is wrong"), (whole[:at + 300], "the recording is cut")):
            open(path, "wb").write(damaged)
            p = tectum("replay", path, code=3)
            check("%s at byte %d of %d: %d message" % (words, at, len(damaged), read) in p.stderr, p.stderr)
            check(missing in p.stderr and "dump" not in p.stderr and len(p.stderr.splitlines()) == 1, p.stderr)


@test
def an_attachment_that_was_changed_is_refused():
    whole = bytearray(open(FILE, "rb").read())
    whole[whole.index(b'"max_tokens"') + 3] ^= 1  # a letter for a letter: still JSON
    path = WORK + "/attached.mcap"
    open(path, "wb").write(whole)
    p = tectum("replay", path, code=3)
    check("%s: the checksum of attachment pipeline.json is wrong, at byte" % path in p.stderr, p.stderr)
    check(len(p.stderr.splitlines()) == 1, p.stderr)


@test
def an_output_replaces_no_other_file():
    path, few = WORK + "/replaced.lua", ["--random-weights", "1", "--size", "tiny", "--random-inputs", "1", "-n", "1"]
    open(path, "wb").write(open(DEMO, "rb").read())
    p = tectum("run", DEMO, *few, "--record", path, code=3)
    check("%s: there is a file that is no recording" % path in p.stderr, p.stderr)
    check(open(path, "rb").read() == open(DEMO, "rb").read())
    path = WORK + "/replaced.mcap"
    for _ in range(2):  # a recording replaces an older one
        tectum("run", DEMO, *few, "--record", path)
    was = open(path, "rb").read()
    for words in (["trace", path, "-o", path], ["replay", path, "--diff", "--html", path]):
        p = tectum(*words, code=None)
        check(p.returncode == 3 and "is a recording, which this output does not replace" in p.stderr, words, p.stderr)
        check(open(path, "rb").read() == was, words)
    path = WORK + "/replaced.memory"
    open(path, "wb").write(b"TECMEM1\0" + bytes(100))
    p = tectum("trace", FILE, "-o", path, code=3)
    check("is a memory's store, which this output does not replace" in p.stderr, p.stderr)


@test
def hostile_recordings_are_refused():
    whole = bytearray(open(FILE, "rb").read())
    path = WORK + "/hostile.mcap"
    for at in range(9, len(whole), max(1, len(whole) // 60)):
        for byte in (0, 255):
            mutant = bytearray(whole)
            mutant[at] = byte
            open(path, "wb").write(mutant)
            for verb in (["trace"], ["replay", "--sim"]):
                p = subprocess.run([PROGRAM, *verb, path], capture_output=True)
                check(p.returncode in (0, 3), verb, at, byte, p.returncode, p.stderr[-300:])
    open(path, "w").write("no recording")
    p = tectum("explain", path, code=3)
    check("no MCAP file" in p.stderr and "--record" in p.stderr, p.stderr)
    tectum("explain", FILE, "--frame", "x", code=2)
    missed = {m["frame"] for m in json.loads(tectum("explain", FILE, "--format", "json").stdout)["misses"]}
    tectum("explain", FILE, "--miss", "0", code=0 if 0 in missed else 3)  # a slow machine may miss it
    tectum("explain", FILE, "--miss", "1000", code=3)
    tectum("explain", code=2)


def without_crc(data):
    """Chunks that say nothing of their check sum, so that what is changed in them is read."""
    data, at = bytearray(data), 8
    while at + 9 < len(data):
        if data[at] == 6:
            data[at + 33:at + 37] = bytes(4)
        at += 9 + int.from_bytes(data[at + 1:at + 9], "little")
    return data


@test
def a_robot_may_see_nothing_beside_one_that_does():
    path = WORK + "/blind.mcap"
    tectum("run", DEMO, "--random-weights", "1", "--size", "tiny", "--random-inputs", "3", "--frames", "4", "--set",
           "frame.sessions=2", "--record", path)
    data = without_crc(open(path, "rb").read())
    ticks = [m.end() for m in re.finditer(rb'"session":1,"tick_us":\d+,"observed":', data)]
    check(len(ticks) == 4 and data[ticks[-1]:ticks[-1] + 4] == b"true", len(ticks))
    data[ticks[-1]:ticks[-1] + 4] = b"null"
    open(path, "wb").write(data)
    j, _ = simulate(path=path)
    check(j["frames"] == 4 and j["plans"]["differ"] >= 1, j)
    tectum("replay", path, code=1)  # what is missing differs


@test
def the_file_has_a_limit_and_a_full_disk_ends_it():
    path = WORK + "/small.mcap"
    many = ["run", DEMO, "--random-weights", "1", "--size", "tiny", "--random-inputs", "3", "--frames"]
    p = tectum(*many, "300", "--record", path, "--record-mib", "1")
    check("has its 1 MiB" in p.stderr and len(p.stdout.splitlines()) == 300, p.stderr)
    check(os.path.getsize(path) < 8 << 20)
    check(json.loads(tectum("explain", path, "--format", "json").stdout)["frames"] > 0)
    p = subprocess.run(["sh", "-c", "ulimit -f 400; trap '' XFSZ; exec \"$@\"", "sh", PROGRAM, *many,
                        "200", "--record", path], capture_output=True, text=True)
    check("the recording has ended" in p.stderr and len(p.stdout.splitlines()) == 200, p.stderr[-300:])
    tectum("run", DEMO, "--record-mib", "1", code=2)
    tectum("run", DEMO, "--record", WORK + "/none/x.mcap", code=3)


@test
def misses_have_their_cause():
    path = WORK + "/late.mcap"
    p = tectum("run", DEMO, "--inputs", INPUTS, "--clock", "paced", "--set", "frame.period_ms=1", "--set", "nodes.act.deadline.ms=1",
               "--record", path, "--format", "json")
    ticks = [json.loads(x) for x in p.stdout.splitlines()]
    causes = {x["frame"]: x["cause"] for x in ticks if x["missed"] and x.get("start_us") is not None}
    j = json.loads(tectum("explain", path, "--format", "json").stdout)
    check(j["missed"] == len(j["misses"]) > 0, j["missed"])
    for miss in j["misses"]:
        check(miss["cause"] == causes.get(miss["frame"], miss["cause"]), miss)
        check(miss["words"] and miss["us_over"] > 0, miss)
        one = json.loads(tectum("explain", path, "--miss", str(miss["frame"]), "--format",
                                "json").stdout)
        check({k: one[k] for k in miss} == miss, one)
    text = tectum("explain", path, "--frame", str(j["misses"][0]["frame"])).stdout
    check("missed by" in text and "see" in text, text)


@test
def a_miss_and_a_signal_dump_the_recorder():
    tectum("run", DEMO, "--inputs", INPUTS, "--clock", "paced", "--set", "frame.period_ms=1", "--set",
           "nodes.act.deadline.ms=1", "--dump-dir", WORK)
    dumps = glob.glob(WORK + "/miss-frame*.mcap")
    check(len(dumps) == 1, dumps)
    j = json.loads(tectum("explain", dumps[0], "--format", "json").stdout)
    check(j["missed"] > 0, j)
    p = tectum("replay", dumps[0], code=3)
    check("cannot be replayed" in p.stderr, p.stderr)
    check("cannot be replayed" in tectum("replay", dumps[0], "--sim", code=3).stderr)
    s = Server(DEMO, "--late-ok", "--dump-dir", WORK)
    c = s.connect()
    c.infer(OBSERVATION)
    c.infer(OBSERVATION)  # the frame of the first has ended
    s.p.send_signal(signal.SIGUSR1)
    for _ in range(100):
        if glob.glob(WORK + "/recorder-frame*.mcap"):
            break
        time.sleep(0.1)
    code, _, err = s.end()
    check(code == 0 and "the flight recorder is in" in err, err)
    check(json.loads(tectum("top", glob.glob(WORK + "/recorder-frame*.mcap")[0], "--format",
                            "json").stdout)["frames"] > 0)


@test
def the_figures_are_what_prometheus_reads():
    control = WORK + "/top-socket"
    s = Server(DEMO, "--late-ok", "--control", control, "--key", key_file("abcdefgh12345678"))
    c = s.connect("Authorization: Api-Key abcdefgh12345678\r\n")
    for _ in range(3):
        c.infer(OBSERVATION)
    url = "http://127.0.0.1:%d/metrics" % s.port
    try:
        urllib.request.urlopen(url)
        check(False, "figures without the key")
    except urllib.error.HTTPError as e:
        check(e.code == 401, e)
    request = urllib.request.Request(url, headers={"Authorization": "Api-Key abcdefgh12345678"})
    for _ in range(100):  # the frame of the last answer may not have ended
        text = urllib.request.urlopen(request).read().decode()
        samples, helps = {}, set()
        for line in text.splitlines():
            if line.startswith("# HELP "):
                helps.add(line.split()[2])
            elif not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                samples[name] = float(value)
        if samples["tectum_frames_total"] >= 3 and samples["tectum_tokens_generated_total"] and \
                samples['tectum_stage_seconds_count{node="act"}'] == 3:
            break
        time.sleep(0.1)
    base = "http://127.0.0.1:%d" % s.port
    for path, key, code in (("/v1/graph", None, 401), ("/trace", None, 401), ("/trace?frames=0", 1, 400),
                            ("/trace?frames=x", 1, 400), ("/trace?frames=101", 1, 400), ("/trace?frames=-1", 1, 400),
                            ("/trace?frames=" + 40 * "0" + "200", 1, 400), ("/trace?frames=" + 3000 * "x", 1, 400)):
        check(http_code(base + path, key) == code, path)
    for path in ("/v1/graph", "/trace"):
        for name, value in (("Origin", "http://evil"), ("Sec-Fetch-Site", "cross-site"), ("sec-fetch-site", "Cross-Site")):
            check(http_code(base + path, 1, {name: value}) == 403, path, name)
    check(http_code(base + "/v1/graph", 1, {"Sec-Fetch-Site": "none"}) == 200, "an address that somebody typed")
    page = lambda path: json.load(urllib.request.urlopen(urllib.request.Request(base + path, headers=KEY)))
    graph = page("/v1/graph")
    check(page("/v1/graph") == graph, "it stays as it is")
    plain = json.loads(tectum("graph", DEMO, "-T", "json").stdout)
    check(graph.pop("dot") == tectum("graph", DEMO, "-T", "dot").stdout and graph == plain, graph)
    trace = page("/trace?frames=2")["traceEvents"]
    sees = [e for e in trace if e.get("name") == "see" and e["ph"] == "X"]
    check(sees and all(e["dur"] > 0 for e in sees), trace)
    check(http_code(base + "/trace", 1) == 503, "one trace a second")
    check(samples['tectum_requests_total{status="answered"}'] == 3, text)
    check(samples["tectum_frames_total"] >= 3 and samples["tectum_tokens_generated_total"] > 0, text)
    check(samples["tectum_obs_to_action_seconds_count"] == 3, text)
    check(samples['tectum_stage_seconds_count{node="act"}'] == 3, text)
    for name in samples:
        base = name.split("{")[0]
        for end in ("_bucket", "_sum", "_count"):
            base = base[:-len(end)] if base.endswith(end) and base not in helps else base
        check(base in helps, name)
    for node in ("see", "act"):
        le = [v for k, v in samples.items() if k.startswith('tectum_stage_seconds_bucket{node="%s"' % node)]
        check(le == sorted(le) and le[-1] == 3, le)
    looks = tectum("top", "--control", control, "--count", "2", "--every-ms", "50", "--format", "json")
    looks = [json.loads(x) for x in looks.stdout.splitlines()]
    check(len(looks) == 2 and looks[1]["frames"] >= 3 and "Hz" in looks[1]["cadence"], looks)
    check(s.end()[0] == 0)


KEY = {"Authorization": "Api-Key abcdefgh12345678"}


def http_code(url, key, headers={}):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers={**headers, **(KEY if key else {})})).status
    except urllib.error.HTTPError as e:
        return e.code


def key_file(key):
    path = WORK + "/key"
    with open(path, "w") as f:
        f.write(key + "\n")
    os.chmod(path, 0o600)
    return path


def whole_flows(trace):
    """Events of each flow by its id: it begins once, ends once, and goes on in between."""
    flows = {}
    for e in trace["traceEvents"]:
        if e["ph"] in ("s", "t", "f"):
            flows.setdefault(e["id"], []).append(e)
    for f in flows.values():
        f.sort(key=lambda e: (e["ts"], "stf".index(e["ph"])))
        check(f[0]["ph"] == "s" and f[-1]["ph"] == "f" and all(e["ph"] == "t" for e in f[1:-1]), f)
    return flows


@test
def a_trace_is_what_perfetto_defines():
    tectum("trace", FILE, "-o", WORK + "/t.pftrace")
    data = open(WORK + "/t.pftrace", "rb").read()
    tracks, open_slices, flows = {}, {}, [set(), set()]
    for number, packet in varints(data):
        check(number == 1)
        fields = dict(varints(packet))
        check(10 in fields, "a sequence")
        if 60 in fields:
            d = dict(varints(fields[60]))
            tracks[d[1]] = d.get(2, b"").decode()
        if 11 in fields:
            e = list(varints(fields[11]))
            d = dict(e)
            check(d[11] in tracks and 8 in fields, d)
            open_slices.setdefault(d[11], []).append((fields[8], d[9]))
            for k, v in e:
                if k in (47, 48):
                    flows[k == 48].add(v)
    for track, events in open_slices.items():
        depth = 0
        for _, kind in sorted(events, key=lambda x: (x[0], -x[1])):
            depth += {1: 1, 2: -1}.get(kind, 0)
            check(0 <= depth <= 2, tracks[track], depth)
        check(depth == 0, tracks[track])
    check({"frames", "policy", "node see", "node act", "node talk", "stream 0", "slack", "executed act"} <=
          set(tracks.values()), tracks)
    check(flows[1] and flows[1] == flows[0], "a flow that begins ends, and one that ends has begun")
    tectum("trace", FILE, "--chrome", "-o", WORK + "/t.json")
    j = json.load(open(WORK + "/t.json"))
    check({e["ph"] for e in j["traceEvents"]} >= {"M", "X", "i", "C", "s", "f"})
    flows = whole_flows(j)
    ends = [f for id, f in flows.items() if id >> 56 == 1]  # of observations
    check(all([e["ph"] for e in f] == ["s", "t", "f"] for f in ends), "frame, leaves, executed", ends)
    check(len(flows) > len(ends), "requests and their tokens")
    ran = [(e["dur"], e["args"]) for e in j["traceEvents"] if e["ph"] == "X" and "executed" in e.get("args", {})]
    check(len(ran) == len(ends) and all(sum(a.values()) == 16 for _, a in ran) and any(a["executed"] for _, a in ran), ran)
    row_us = Recording(FILE).of("/tectum/recording")[0]["chunks"][0]["row_us"]  # frames may follow each other within one
    check(all(abs(a["executed"] - dur / row_us) < 1.01 for dur, a in ran), row_us, ran)
    slots = {}
    for e in sorted((e for e in j["traceEvents"] if e["ph"] == "C" and e["name"].startswith("slots in use")), key=lambda e: e["ts"]):
        slots.setdefault(e["name"], []).append((e["ts"], list(e["args"].values())[0]))
    check(set(slots) == {"slots in use, obs", "slots in use, lang"}, slots)
    check({n for _, n in slots["slots in use, obs"]} == {0, 1}, slots)
    alive = [f["in_flight"] for f in Recording(FILE).of("/tectum/frames")]
    counted = [n for _, n in slots["slots in use, lang"]]
    check(min(counted) >= 0 and max(alive) <= max(counted) <= 8, alive, counted)
    for f in Recording(FILE).of("/tectum/frames"):  # at the end of a frame, those that are in flight have their slots
        before = [n for t, n in slots["slots in use, lang"] if t <= f["end_us"]]
        check(before and before[-1] == f["in_flight"], f["frame"], before, f["in_flight"])
    part = json.loads(tectum("trace", FILE, "--chrome", "--last", "1ms").stdout)
    check(0 < len(part["traceEvents"]) < len(j["traceEvents"]))
    frames = Recording(FILE).of("/tectum/frames")
    shorter = int((frames[-1]["end_us"] - min(e["ts"] for f in flows.values() for e in f)) / 1000)  # ms, of any machine
    check(shorter > 1, shorter)
    for last in sorted({1 + i * (shorter - 1) // 8 for i in range(8)}):
        check(len(whole_flows(json.loads(tectum("trace", FILE, "--chrome", "--last", "%dms" % last).stdout))) < len(flows), last, shorter)
    tectum("trace", FILE, "--last", "soon", code=2)


@test
def slots_of_rings_are_counted_by_session():
    for sessions in (1, 2):  # a ring of six, whose oldest leaves behind the one that comes
        path = WORK + "/ring%d.mcap" % sessions
        tectum("run", "pipelines/suite/ring.lua", "--random-weights", "1", "--size", "tiny", "--random-inputs", "1", "-n", "9",
               "--set", "frame.sessions=%d" % sessions, "--record", path)
        j = json.loads(tectum("trace", path, "--chrome").stdout)
        n = [list(e["args"].values())[0] for e in j["traceEvents"] if e["ph"] == "C" and e["name"] == "slots in use, ring"]
        check(max(n) == 7 * sessions and min(n) >= 0 and n[:sessions] == list(range(1, sessions + 1)), sessions, n)


@test
def a_served_robot_is_recorded_and_replayed():
    path, control = WORK + "/served.mcap", WORK + "/socket"
    s = Server(DEMO, "--late-ok", "--record", path, "--control", control)
    for client in range(2):
        c = s.connect()
        for i in range(4):
            c.infer({**OBSERVATION, "tectum": {"seed": i}} if i % 2 else OBSERVATION)
        c.close()
        refused = s.connect()  # no observation of the robot: the next one has its number
        refused.send({**{name: OBSERVATION[name] for name in OBSERVATION if name != "prompt"}, "other": "a text",
                      "observation/state": Array.floats([0.5] * 4)})
        check("prompt" in refused.failure()[0])
        refused.close()
    live = json.loads(tectum("explain", "--control", control, "--format", "json").stdout)
    check(live["frames"] >= 8, live)
    tectum("trace", "--control", control, "--last", "5s", "-o", WORK + "/live.pftrace")
    code, _, err = s.end()
    check(code == 0, err)
    r = Recording(path)
    check(len(r.of("/tectum/actions/act")) == 8 and len(r.of("/inputs/prompt")) == 8)
    j = json.loads(tectum("replay", path, "--format", "json").stdout)
    check(j["actions"] == {"equal": 8, "differ": 0, "missing": 0} and j["texts"]["differ"] == 0, j)


@test
def a_killed_server_leaves_what_it_wrote():
    path = WORK + "/killed.mcap"
    s = Server(DEMO, "--late-ok", "--record", path)
    c = s.connect()
    for _ in range(5):
        c.infer(OBSERVATION)
    time.sleep(1.6)  # a chunk is ended every second
    s.end(signal.SIGKILL)
    p = tectum("explain", path, "--format", "json")
    check(json.loads(p.stdout)["frames"] >= 5 and "not closed" in p.stderr, p.stderr)
    before = open(path, "rb").read()
    _, _, err = Server(DEMO, "--late-ok", "--record", path).end()
    check("killed-1.mcap now" in err and open(WORK + "/killed-1.mcap", "rb").read() == before, err)
    _, _, err = Server(DEMO, "--late-ok", "--record", path).end()
    check("killed-2.mcap now" in err and open(WORK + "/killed-1.mcap", "rb").read() == before, err)


@test
def the_page_of_a_running_robot_is_closed_to_others():
    p = subprocess.Popen([PROGRAM, "run", DEMO, "--random-inputs", "3", "--clock", "paced", "--frames", "120",
                          "--set", "frame.period_ms=100", "--view", "0", "--format", "json"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = ""
    while "http://127.0.0.1:" not in line:  # a note about the device may come first
        line = p.stderr.readline()
        check(line, "the page's address is said")
    port = int(line.split("127.0.0.1:")[1].split("/")[0])

    def ask(request, whole=True):
        s = socket.create_connection(("127.0.0.1", port), timeout=20)
        s.sendall(request)
        got = b""
        while whole:
            more = s.recv(65536)
            if not more:
                break
            got += more
        s.close()
        return got

    get = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]  # say nothing
    ask(get % (b"/view", port), whole=False)  # leaves before the answer
    page = ask(get % (b"/view", port))
    check(page.startswith(b"HTTP/1.1 200") and b"default-src 'none'" in page and b"</html>" in page)
    check(b"src=" not in page and b"http://www" not in page.replace(b"http://www.w3.org/2000/svg", b""))
    time.sleep(0.5)
    body = json.loads(ask(get % (b"/data", port)).split(b"\r\n\r\n", 1)[1])
    check(body["frames"] and body["nodes"] == ["see", "act", "talk"] and "Hz" in body["cadence"], body)
    newest = body["frames"][-1]
    check(len(newest["launches"]) >= 2 and newest["policy"] == "oxygen", newest)
    after = ("/data?after=%.12g" % newest["start"]).encode()
    after = json.loads(ask(get % (after, port)).split(b"\r\n\r\n", 1)[1])
    check(all(f["frame"] > newest["frame"] for f in after["frames"]), newest["frame"], after["frames"][:1])
    for request, code in ((b"GET /view HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"403"),
                          (b"GET /view HTTP/1.1\r\n\r\n", b"403"), (get % (b"/../etc", port), b"404"),
                          (b"POST /view HTTP/1.1\r\nHost: localhost:1\r\n\r\n", b"400"),
                          (b"x" * 5000, b"403"), (b"\0\r\n\r\n", b"403")):  # what is no HTTP
        try:
            got = ask(request)
        except ConnectionResetError:  # it had more to say than is read
            got = b"HTTP/1.1 " + code
        check(got[9:12] == code, request[:40], got[:60])
    out, err = p.communicate(timeout=60)
    for s in silent:
        s.close()
    frames = [json.loads(x) for x in out.splitlines()]
    check(p.returncode == 0 and len(frames) == 120, p.returncode, len(frames), err)
    tectum("run", DEMO, "--random-inputs", "3", "--view", "web", code=2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        err = tectum("run", DEMO, "--random-inputs", "3", "--view", str(taken.getsockname()[1]), code=3).stderr
        check("--view" in err and "in use" in err and "--port" not in err, err)


@test
def hostile_words_of_a_recording_are_text():
    data = bytearray(open(FILE, "rb").read())
    at = 8
    while at + 9 <= len(data):  # without a checksum a chunk is taken as it is
        opcode, n = struct.unpack_from("<BQ", data, at)
        if opcode == 6:
            struct.pack_into("<I", data, at + 9 + 24, 0)
        at += 9 + n
        if opcode == 15:
            break
    hostile = bytes(data).replace(b'"pipeline":"demo_metaworld"', b'"pipeline":"</script><b>xx"')
    hostile = hostile.replace(b'"name":"talk"', b'"name":"<u>x"').replace(b'":"oxygen"', b'":"</svg>"')
    hostile = hostile.replace(b'"text":"move"', b'"text":"<u>y"')
    check(len(hostile) == len(data) and hostile != bytes(data))
    path = WORK + "/words.mcap"
    open(path, "wb").write(hostile)
    tectum("replay", path, "--html", WORK + "/words.html")
    page = open(WORK + "/words.html").read()
    check(page.count("<script") == page.count("</script>") == 2, page[:300])
    check("&lt;/script>&lt;b>xx" in page and "<u>x" not in page and "<b>xx" not in page, page[:300])
    body = json.loads(page.split('id="data">')[1].split("</script>")[0])
    check("<u>x" in body["nodes"] and body["policy"] == "</svg>", body["nodes"], body["policy"])
    check(any("<u>y" in t["text"] for t in body["texts"].values()) and "<u>y" not in page, body["texts"])
    for verb in ("explain", "top", "trace"):
        tectum(verb, path, *(["--chrome"] if verb == "trace" else []))
    open(path, "wb").write(hostile.replace(b'"name":"<u>x"', b'"name":"t\x7flk"'))
    for view in ("nodes", "requests", "graphs"):
        shown = tectum("top", path, "--show", view).stdout
        check("t\\x7flk" in shown and "\x7f" not in shown, view, shown)


@test
def what_nodes_wait_for_adds_up():
    path = WORK + "/waiting.mcap"
    tectum("run", DEMO, "--inputs", INPUTS, "--clock", "paced", "--set", "frame.period_ms=60", "--set",
           "nodes.act.deadline.ms=50", "--threads", "1", "--record", path)
    j = json.loads(tectum("profile", "--waiting", path, "--format", "json").stdout)
    frames = Recording(path).of("/tectum/frames")
    span = max(f["end_us"] for f in frames) - min(f["tick_us"] for f in frames)
    check(j["frames"] == len(frames) and abs(j["span_us"] - span) < 10, j["span_us"], span)
    ran = {}
    for f in frames:
        for launch in f["launches"]:
            ran[launch["node"]] = ran.get(launch["node"], 0) + launch["end_us"] - launch["start_us"]
    check([n["node"] for n in j["nodes"]] == ["see", "act", "talk"], j["nodes"])
    for n in j["nodes"]:
        slack = 2 * sum(len(f["launches"]) for f in frames)  # of microseconds that were rounded
        check(abs(n["runs_us"] - ran[n["node"]]) <= slack, n, ran)
        check(abs(sum(v for k, v in n.items() if k != "node") - j["span_us"]) < 10, n, j["span_us"])
        check(all(n[k] == j["machine"][k] for k in ("input_us", "host_us", "no_work_us")), n, j["machine"])
    check(j["machine"]["no_work_us"] > 0 and j["machine"]["host_us"] > 0 and j["machine"]["other_node_us"] == 0, j)
    check("OTHER NODE" in tectum("profile", "--waiting", path).stdout)
    ring = WORK + "/ring.mcap"  # two rings share forwards, which are of none of their nodes
    tectum("run", "pipelines/graphs/g19_two_rings.lua", "--random-weights", "1", "--size", "tiny", "--random-inputs", "3", "-n",
           "8", "--record", ring)
    j = json.loads(tectum("profile", "--waiting", ring, "--format", "json").stdout)
    ran = {n["node"]: n["runs_us"] for n in j["nodes"]}
    check(ran["packed"] > 0 and abs(sum(ran.values()) - j["machine"]["runs_us"]) < 10, j)
    took = sum(x["end_us"] - x["start_us"] for f in Recording(ring).of("/tectum/frames") for x in f["launches"])
    check(abs(ran["packed"] - took) <= 2 * 8 * 8, ran, took)
    check("\npacked " in tectum("top", ring).stdout and "packed" in tectum("explain", ring, "--frame", "5").stdout)
    check("-1" not in tectum("top", ring, "--show", "requests").stdout)
    tectum("profile", "--waiting", path, "--ops", code=2)
    tectum("profile", "--waiting", DEMO, code=3)


@test
def a_robot_that_has_done_nothing_is_looked_at():
    socket_path = os.path.join(os.path.dirname(FILE), "idle.sock")
    s = Server(DEMO, "--control", socket_path)
    j = json.loads(tectum("top", "--control", socket_path, "--count", "1", "--format", "json").stdout)
    check(j["frames"] == 0 and j["frame"] == -1 and j["pipeline"] == "demo_metaworld", j)
    check("0 of 0 over" in tectum("top", "--control", socket_path, "--count", "1").stdout)
    check(tectum("top", "--control", socket_path).stdout.count("0 of 0 over") == 1)  # what is no terminal's is not repeated
    check(json.loads(tectum("explain", "--control", socket_path, "--format", "json").stdout)["frames"] == 0)
    trace = json.loads(tectum("trace", "--control", socket_path, "--chrome").stdout)
    check(isinstance(trace["traceEvents"], list), trace)
    check(s.end()[0] == 0)


class Terminal:
    """`top` of a robot where a person looks: on a terminal, with keys."""

    def __init__(self, folder, *arguments):
        self.own, other = pty.openpty()
        self.p = subprocess.Popen([PROGRAM, "top", *arguments], stdin=other, stdout=other, stderr=other, cwd=folder,
                                  start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(other)

    def press(self, key, words):
        """Press a key (none: "") and read until these words are on the screen."""
        os.write(self.own, key.encode())
        seen, until = b"", time.monotonic() + 60
        while words.encode() not in seen:
            check(time.monotonic() < until and select.select([self.own], [], [], 60)[0], key, words, seen[-2000:])
            seen += os.read(self.own, 1 << 16)
        return seen.decode()


@test
def keys_choose_what_top_shows():
    socket_path, folder = WORK + "/top.sock", WORK + "/top"
    os.mkdir(folder)
    s = Server(DEMO, "--control", socket_path, "--late-ok")
    c = s.connect()
    for _ in range(3):
        c.infer({**OBSERVATION, "tectum": {"tasks": ["action", "text"]}})
    t = Terminal(folder, "--control", socket_path, "--every-ms", "3600000")
    t.press("", "f freeze  R record")
    for key, words in (("r", "finished: "), ("m", "OPERATION"), ("g", "p99 ms"), ("p", "strikes 0"), ("n", "DEVICE"),
                       ("f", ""), ("r", "finished: ")):  # a view ends the freeze
        t.press(key, words)
    t.press("R", "/recorder-frame")
    t.press("q", "")
    check(t.p.wait(timeout=60) == 0, t.p.returncode)
    os.close(t.own)
    dump, = glob.glob(folder + "/recorder-frame*.mcap")
    check("talk" in tectum("explain", dump, "--frame", "1").stdout)
    for view, words in (("requests", "finished: "), ("memory", "alloc"), ("graphs", "act"), ("policy", "oxygen"),
                        ("nodes", "DEVICE")):
        check(words in tectum("top", dump, "--show", view).stdout, view)
    check("strikes 0" in tectum("top", "--control", socket_path, "--count", "1", "--show", "policy").stdout)
    tectum("top", FILE, "--show", "policy", "--format", "json", code=2)
    check(s.end()[0] == 0)


def echoes(t):
    return termios.tcgetattr(t.own)[3] & (termios.ECHO | termios.ICANON) == termios.ECHO | termios.ICANON


@test
def top_leaves_the_terminal_as_it_was():
    socket_path = WORK + "/left.sock"
    s = Server(DEMO, "--control", socket_path, "--late-ok")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        t = Terminal(WORK, "--control", socket_path, "--every-ms", "3600000")
        t.press("", "R record")
        check(not echoes(t), number)
        t.p.send_signal(number)
        check(t.p.wait(timeout=60) == -number and echoes(t), number, t.p.returncode)
        os.close(t.own)
    t = Terminal(WORK, "--control", socket_path, "--every-ms", "3600000")
    t.press("", "R record")
    t.p.send_signal(signal.SIGTSTP)
    # it leads its session, where nobody could let it go on: the system does not stop it
    t.press("p", "strikes 0")
    check(not echoes(t), "goes on with keys")
    t.press("f", "")
    t.press("R", "/recorder-frame")  # also below a frozen screen
    t.press("q", "")
    check(t.p.wait(timeout=60) == 0 and echoes(t))
    os.close(t.own)
    check(s.end()[0] == 0)


@test
def other_keys_ask_the_robot_nothing():
    socket_path = WORK + "/asked.sock"
    s = Server(DEMO, "--control", socket_path, "--late-ok")
    t = Terminal(WORK, "--control", socket_path, "--every-ms", "3600000")
    t.press("", "R record")
    seen = t.press("x" * 300 + "p", "strikes 0")
    check(seen.count("f freeze") <= 1, seen.count("f freeze"))
    t.press("q", "")
    check(t.p.wait(timeout=60) == 0)
    os.close(t.own)
    t = Terminal(WORK, FILE)  # of a recording there is nothing to choose
    check("keys:" not in t.press("", "missed ") and t.p.wait(timeout=60) == 0)
    os.close(t.own)
    check(s.end()[0] == 0)


@test
def a_server_is_probed():
    s = Server(DEMO, "--late-ok")
    url = "ws://127.0.0.1:%d" % s.port
    j = json.loads(tectum("probe", url, "--recording", FILE, "--count", "5", "--format", "json").stdout)
    check(j["n"] == 5 and j["actions"] == [16, 4], j)
    parts = ["wire_us", "decode_us", "prepare_us", "model_us", "finish_us"]
    check(all(j[p] is not None and 0 <= j[p] <= j["client_us"] for p in parts), j)
    check(j["model_us"] > j["decode_us"] and sum(j[p] for p in parts) < 2 * j["client_us"], j)
    check("model" in tectum("probe", url, "--recording", FILE, "--count", "1").stdout)
    j = json.loads(tectum("probe", url, "--count", "2", "--format", "json").stdout)  # nothing is given: one is drawn
    check(j["n"] == 2 and j["actions"] == [16, 4] and j["model_us"] > 0, j)
    drawn = os.path.join(os.path.dirname(FILE), "drawn.mcap")  # as probe's own words have it: ids in place of a text
    tectum("run", DEMO, "--random-inputs", "1", "--record", drawn)
    j = json.loads(tectum("probe", url, "--recording", drawn, "--count", "2", "--format", "json").stdout)
    check(j["n"] == 2 and j["actions"] == [16, 4], j)
    # what it sends is the recording's observation
    c = s.connect()
    reply = c.infer({**OBSERVATION, "tectum": {"timing": True}})
    timing = reply["tectum"]["timing"]
    check(set(timing) == {"wait_us", "decode_us", "prepare_us", "model_us", "finish_us", "received_ts", "left_ts"}, reply)
    check(timing["received_ts"] + 1000 * timing["model_us"] < timing["left_ts"], reply)
    check("timing" not in c.infer({**OBSERVATION, "tectum": {"seed": 1}})["tectum"])
    check(s.end()[0] == 0)
    tectum("probe", url, "--recording", FILE, code=3)
    tectum("probe", "http://x", "--recording", FILE, code=2)
    tectum("probe", url, code=3)
    tectum("probe", url, "--recording", FILE, "--seed", "1", code=2)


class Openpi:
    """A server with such inputs in its first message, or with that as its first message; `got` are its requests."""

    def __init__(self, inputs, hello=None):
        self.listener, self.got = socket.create_server(("127.0.0.1", 0)), []
        self.url = "ws://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.hello = pack({"tectum": {"inputs": inputs}}) if hello is None else hello
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            s = self.listener.accept()[0]
            s.settimeout(20)
            try:
                s.recv(4096)
                s.sendall(b"HTTP/1.1 101 Y\r\n\r\n" + Socket.bytes_of(2, self.hello, masked=False))
                while True:
                    self.got.append(self.message(s))
                    s.sendall(Socket.bytes_of(2, pack({"actions": Array.floats([0.0])}), masked=False))
            except (OSError, EOFError):  # the probe has left
                s.close()

    @staticmethod
    def message(s):
        def take(n):
            data = b""
            while len(data) < n:
                more = s.recv(n - len(data))
                if not more:
                    raise EOFError
                data += more
            return data
        n = take(2)[1] & 127
        n = n if n < 126 else int.from_bytes(take(2 if n == 126 else 8), "big")
        mask, data = take(4), take(n)
        return unpack(bytes(b ^ mask[i % 4] for i, b in enumerate(data)))


def said(name, kind, required=True, **more):
    return {"name": name, "kind": kind, "required": required, **more}


@test
def what_a_probe_draws_fits_what_the_server_says():
    s = Openpi([said("images/top", "image", shape=[None, None, 3]), said("images/side", "image", shape=[6, 5, 3]),
                said("state", "state", shape=[7]), said("prompt", "text"), said("prefix", "along", False, shape=[4, 2])])
    for seed in ("3", "3", "4"):
        tectum("probe", s.url, "--seed", seed, "--count", "1")
    one, again, other = (s.got[i] for i in (0, 2, 4))
    check(set(one) == {"images", "state", "prompt", "tectum"} and set(one["images"]) == {"top", "side"}, list(one))
    for name, dtype, shape, x in (("top", "|u1", (224, 224, 3), one["images"]["top"]),
                                  ("side", "|u1", (6, 5, 3), one["images"]["side"]), ("state", "<f4", (7,), one["state"])):
        check((x["dtype"], tuple(x["shape"])) == (dtype, shape), name, x["dtype"], x["shape"])
    check(len(set(one["images"]["side"]["data"])) > 20 and one["prompt"].count(" ") == 2, one["prompt"])
    check(all(-1.0 <= x <= 1.0 for x in struct.unpack("<7f", one["state"]["data"])))
    check(one == again and one["state"] != other["state"] and one["images"]["side"] != other["images"]["side"])


@test
def a_probe_distrusts_what_a_server_says_of_its_inputs():
    for inputs, hello, words in (
            ([said("a", "smell")], None, "of a kind that is not known"),
            ([said("a", "image")], None, "no shape"), ([said("a", "image", shape=[1, 2, 3, 4, 5])], None, "no shape"),
            ([said("a", "state", shape=[0])], None, "side 1"), ([said("a", "state", shape=[-1])], None, "side 1"),
            ([said("a", "state", shape=[1 << 63])], None, "side 1"),
            ([said("a", "state", shape=[1 << 20, 1 << 20])], None, "side 2"),
            ([said("i%d" % i, "state", shape=[1 << 22]) for i in range(8)], None, "more than 64 MiB"),
            ([said("a", "state", shape=["x"])], None, "side 1"), ([said(7, "text")], None, "no name"),
            ([said("n" * 300, "text")], None, "no name"), ([7], None, "no name"),
            ([said("i%d" % i, "text") for i in range(2000)], None, "more than"),
            ("all", None, "--recording"), (None, pack({}), "--recording"), (None, pack([1]), "--recording"),
            (None, b"\xc1", "no msgpack")):
        s = Openpi(inputs, hello)
        p = tectum("probe", s.url, "--count", "1", code=3)
        check(words in p.stderr and s.url in p.stderr and len(p.stderr.splitlines()) == 1 and not s.got, words, p.stderr)


@test
def a_probe_distrusts_the_server():
    answers = [b"", b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 5000,
               b"HTTP/1.1 101 Y\r\n\r\n\x81\x05hello",
               b"HTTP/1.1 101 Y\r\n\r\n\x81\x1fTraceback:\n  File 1\nError: no\n\n", b"HTTP/1.1 101 Y\r\n\r\n\x82\xff" + b"\xff" * 8,
               b"HTTP/1.1 101 Y\r\n\r\n\x82\x7f" + b"\x7f" * 8, b"HTTP/1.1 101 Y\r\n\r\n\x82\x01\x80\x82\x02\xff\xff",
               b"HTTP/1.1 101 Y\r\n\r\n\x82\x01\x80\x82\x01\x80\x88\x00"]
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for answer in answers:
            s = listener.accept()[0]
            s.recv(4096)
            try:
                s.sendall(answer)
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
            except OSError:  # the probe has left
                pass
            s.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = "ws://127.0.0.1:%d" % listener.getsockname()[1]
    for answer in answers:
        p = tectum("probe", url, "--recording", FILE, code=3)
        check(len(p.stderr.splitlines()) == 1 and "\\n" not in p.stderr, answer[:40], p.stderr)
        check(b"Traceback" not in answer or p.stderr.endswith("the server refuses: Error: no\n"), p.stderr)


@test
def a_probe_does_not_wait_for_ever():
    switched, hello = b"HTTP/1.1 101 Y\r\n\r\n", Socket.bytes_of(2, pack({}), masked=False)
    # What it says at once, and what again and again: also bytes of an answer that never ends.
    scripts = [(b"", b""), (b"", b"H"), (switched, b""), (switched, b"\x89\x00"), (switched + hello, b""),
               (switched + hello + b"\x82\x7e\x40\x00", b"\x81"), (switched + hello, b"\x89\x00")]
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for first, again in scripts:
            s = listener.accept()[0]
            s.settimeout(0.05)
            try:
                s.sendall(first)
                while True:
                    try:
                        if not s.recv(65536):
                            break
                    except TimeoutError:
                        s.sendall(again)
            except OSError:  # the probe has left
                pass
            s.close()

    threading.Thread(target=serve, daemon=True).start()
    url = "ws://127.0.0.1:%d" % listener.getsockname()[1]
    for script in scripts:
        begin = time.monotonic()
        p = tectum("probe", url, "--recording", FILE, "--timeout", "0.3", code=3)
        took = time.monotonic() - begin
        check("no answer within 300 ms" in p.stderr and len(p.stderr.splitlines()) == 1, script, p.stderr)
        check(0.3 <= took < 15 * SLOW, script, took)
    for wrong in ("0", "-1", "nan", "x"):
        tectum("probe", url, "--timeout", wrong, code=2)


@test
def a_recording_is_a_page():
    path = WORK + "/page.html"
    tectum("replay", FILE, "--html", path)
    page = open(path).read()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    frames = json.loads(tectum("explain", FILE, "--format", "json").stdout)["frames"]
    check(len(data["frames"]) == frames and page.rstrip().endswith("</html>"), frames)
    check("src=" not in page and page.count("<script") == 2)
    said = {}
    for m in Recording(FILE).of("/tectum/text/talk"):
        said["%d:%d" % (m["session"], m["request"])] = said.get("%d:%d" % (m["session"], m["request"]), "") + m["text"]
    check(said and any(said.values()) and {k: t["text"] for k, t in data["texts"].items()} == said, data["texts"], said)
    asked = [r for f in data["frames"] for r in f["requests"]]
    check({r[1] for r in asked if r[0] == "arrive"} == {int(k.split(":")[1]) for k in said}, asked)
    ended = {r[1] for r in asked if r[0] == "finish"}
    check(ended and ended <= {r[1] for r in asked if r[0] == "tokens" and r[3] > 0}, asked)
    check(all({"obs", "lang"} <= {x[0] for x in f["kv"]} for f in data["frames"]), data["frames"][0]["kv"])
    names = [x[0] for x in data["graph"]["items"] if x[1] == "node"]
    check(names == data["nodes"] and all(len(x) % 2 == 0 and len(x) >= 4 for x in data["graph"]["links"]), data["graph"])
    tectum("replay", FILE, "--html", path, "--speed", "1", code=2)


def cells(page, heading):
    """Rows of the table below a heading, as lists of texts."""
    table = page.split("<h2>%s</h2>" % heading)[1].split("</section>")[0]
    rows = re.findall("<tr>(.*?)</tr>", table, re.S)
    return [[html.unescape(re.sub("<[^>]*>", "", c)) for c in re.findall("<t[dh].*?>(.*?)</t[dh]>", r, re.S)] for r in rows]


@test
def what_was_and_what_is_are_a_page():
    path, evil = WORK + "/both.html", "</b><script>x()</script>\u202e"
    with open(WORK + "/loud.lua", "w", encoding="utf-8") as f:
        f.write('return policy { name = "loud", api = 1, version = 1, plan = function(S, F, D)\n'
                '  D:note("why", %s)\nend }\n' % json.dumps(evil, ensure_ascii=False))
    for more in (["--policy", "isolated"], ["--policy", WORK + "/loud.lua"], ["--policy", WORK + "/loud.lua", "--sim"], []):
        lines = tectum("replay", FILE, "--diff", "--html", path, "--format", "json", *more).stdout.splitlines()
        lines, end = [json.loads(x) for x in lines[:-1]], json.loads(lines[-1])
        page = open(path).read()
        check(page.rstrip().endswith("</html>") and not re.search("<script|<img|<link|src=[\"']|href=|url\\(|\u202e", page), page)
        rows = cells(page, "Frames that differ") if lines else [["frame"]]
        check([r[0] for r in rows[1:]] == [str(x["frame"]) for x in lines], more, rows, lines)
        check(bool(lines) == bool(more), "only another policy runs something else", lines)
        if "loud" in str(more) and "--sim" in more:
            check(all(r[-1].startswith("why </b><script>x()</script>") for r in rows[1:]), rows)
        for r, x in zip(rows[1:], lines):
            check(r[5:7] == ["%.3f" % (x["was_us"] / 1e3), "%.3f" % (x["is_us"] / 1e3) if x["is"] is not None else "-"], r, x)
        figures = {r[0]: r[1:] for r in cells(page, "Side by side")[1:]}
        check(set(figures) >= {"frame p50, ms", "frame p99, ms", "frame max, ms", "missed", "policy", "commit", "processor"}, figures)
        frames = Recording(FILE).of("/tectum/frames")
        took = sorted(f["end_us"] - f["start_us"] for f in frames)
        check(figures["frame max, ms"][0] == "%.3f" % (took[-1] / 1e3) and figures["frames"][0] == str(len(took)), figures)
        check(figures["missed"][0] == str(sum(f["missed"] for f in frames)), figures)
        check(page.count('class="was"') == len(frames) and page.count('class="mark"') == len(lines), more)
        if "--sim" not in more:
            check(figures["chunks that are the same"][1] == str(end["actions"]["equal"]), figures, end)
    tectum("replay", FILE, "--html", path, "--sim", code=2)
    tectum("replay", FILE, "--html", WORK + "/none/both.html", "--diff", code=3)


def page_data(path):
    tectum("replay", path, "--html", WORK + "/page.html")
    return json.loads(open(WORK + "/page.html").read().split('id="data">')[1].split("</script>")[0])


@test
def a_long_text_of_a_page_ends_where_there_is_no_more_room():
    said = {}

    def text_of(message):  # pieces of 1001, 1001, 3, 3, ... bytes, of characters of two and one
        n = said[message["request"]] = said.get(message["request"], 0) + 1
        return "\u00e4" * 500 + "a" if n < 3 else "end"

    path = WORK + "/long.mcap"
    with open(path, "wb") as file:
        file.write(rewritten(open(FILE, "rb").read(), "/tectum/text/talk", lambda m: {**m, "text": text_of(m)}))
    texts = [t["text"] for t in page_data(path)["texts"].values()]
    check(texts and max(said.values()) > 3, said)
    check("\u00e4" * 500 + "a" + "\u00e4" * 499 + " ..." in texts and not any("end" in t for t in texts), [t[-9:] for t in texts])


@test
def a_page_says_which_line_decided():
    data, source = page_data(FILE), open("policies/oxygen.lua").read().splitlines()
    told = [d for f in data["frames"] for d in f["decisions"]]
    check(told and all(d["what"] in ("decode", "pause") and d["node"] == "talk" for d in told), told)
    for d in told:
        name, line = d["at"].split(":")
        check(name == "oxygen.lua" and "D:" + d["what"] in source[int(line) - 1], d)
    for f, recorded in zip(data["frames"], Recording(FILE).of("/tectum/frames")):
        rows = {(x["rows"], x["k"]) for x in recorded["launches"] if x["node"] == "talk"}
        check(rows == {(d["requests"], d["k"]) for d in f["decisions"] if d["what"] == "decode"}, f["decisions"], rows)
    path = WORK + "/notes.lua"
    with open(path, "w") as f:
        f.write('return policy { name = "notes", api = 1, version = 1, plan = function(S, F, D)\n'
                '  for i = 1, F.nreq do\n    if i > 1 then D:pause(i) else D:decode(i, 4) end\n  end\n'
                '  D:note("why", "</script><b>")\n  D:note("n", F.nreq)\nend }\n')
    tectum("run", DEMO, "--inputs", INPUTS, "--policy", path, "--record", WORK + "/notes.mcap")
    data = page_data(WORK + "/notes.mcap")
    last = data["frames"][-1]["decisions"]
    check([d["at"] for d in last if d["what"] == "note"] == ["notes.lua:5", "notes.lua:6"], last)
    check([(d["what"], d["at"]) for d in last if d["what"] != "note"][0] == ("decode", "notes.lua:3"), last)
    check(data["frames"][-1]["notes"]["why"] == "</script><b>", data["frames"][-1])
    one = json.loads(tectum("explain", WORK + "/notes.mcap", "--frame", str(data["frames"][-1]["frame"]), "--format",
                            "json").stdout)
    check(one["decisions"] == last, one["decisions"])


@test
def a_page_shows_chunks_and_how_they_join():
    data = page_data(FILE)
    shape = data["chunks"][0]
    check(shape == {"node": "act", "rows": 16, "row_us": 12500}, shape)
    chunks = [x["chunk"] for x in Recording(FILE).of("/tectum/actions/act")]
    left = [(x, f) for f in data["frames"] for x in f["left"]]
    check(len(left) == len(chunks) and left[0][0][4] is None, left)
    columns, row_ms = len(chunks[0]) // shape["rows"], shape["row_us"] / 1e3
    for i, (x, f) in enumerate(left):
        check(data["nodes"][x[0]] == "act" and x[1] > x[2] and abs(x[1] - x[2] - f["age"]) < 0.01, x, f["age"])
        if i == 0:
            continue
        now = f["start"] + x[1]
        rows = [min(shape["rows"] - 1, int((now - seen) / row_ms))
                for seen in (left[i - 1][1]["start"] + left[i - 1][0][2], f["start"] + x[2])]
        was, is_ = (c[r * columns:(r + 1) * columns] for c, r in zip(chunks[i - 1:i + 1], rows))
        check(abs(max(abs(a - b) for a, b in zip(was, is_)) - x[4]) < 1e-4, i, rows, x)
    if not shutil.which("node"):
        print("# no node: the page's script is not run")
        return
    p = subprocess.run(["node", "tests/page_dom.js", WORK + "/page.html", "3"], capture_output=True, text=True)
    check(p.returncode == 0, p.stderr)
    drawn = json.loads(p.stdout)
    check(sum(e["look"] == "hit" for e in drawn["chunks"]) == len(left), drawn["chunks"])
    check({"c-passed", "c-executed", "jump"} <= {e["look"] for e in drawn["chunks"]}, drawn["chunks"])
    check(any("oxygen.lua:" in e["title"] for e in drawn["decisions"]), drawn["decisions"])
    check(any(re.fullmatch(r'request 0 of talk: \d+ tokens, finished: \w+, ".+"', e["title"]) for e in drawn["requests"]),
          drawn["requests"])
    check({"see", "act", "talk"} <= set(drawn["panel"]) and any("lang fork" in t for t in drawn["panel"]), drawn["panel"])
    check(any("oxygen.lua:" in t for t in drawn["panel"]) and any("rows, " in t for t in drawn["panel"]), drawn["panel"])
    for e in drawn["chunks"]:
        n = [int(w) for w in e["title"].replace(",", "").replace(";", "").split() if w.isdigit()]
        if e["look"] == "hit":  # frame, rows, passed, executed, dropped, overlap
            check(n[1] == 16 and n[2] + n[3] + n[4] in (15, 16, 17), e)


@test
def launches_of_no_node_keep_their_names():
    """A live page's records move on: behind the nodes stand the names of launches that are among the newest ones."""
    path = WORK + "/rings.mcap"
    tectum("run", "pipelines/openvla_ring.lua", "--random-weights", "1", "--size", "tiny", "--random-inputs", "3", "--frames", "9",
           "--set", "resources.ring.shift=device_copy", "--set", "resources.ring.pack=gather", "--record", path)
    data = page_data(path)
    own = sorted({x[0] for f in data["frames"] for x in f["launches"]})  # of a ring every launch is of no node
    names = [data["nodes"][i] for i in own]
    check(names == ["gather", "packed", "copy"], data["nodes"])
    if not shutil.which("node"):
        print("# no node: the page's script is not run")
        return
    newer = {**data["frames"][-1], "frame": 9, "start": data["frames"][-1]["start"] + 100,
             "launches": [[own[0], 0, 0, 1, 1, 0], [own[0] + 1, 0, 1, 2, 1, 0]]}
    told = {**data, "nodes": data["nodes"][:own[0]] + ["later", names[-1]], "frames": [newer]}
    with open(WORK + "/answer.json", "w") as f:
        json.dump(told, f)

    def launches(*arguments):
        p = subprocess.run(["node", "tests/page_dom.js", WORK + "/page.html", *arguments], capture_output=True, text=True)
        check(p.returncode == 0, p.stderr)
        return json.loads(p.stdout)["launches"]

    for i in range(9):
        check(launches(str(i)) == launches(str(i), WORK + "/answer.json"), "a frame that came before", i)
    check([x.split(" 1 rows")[0].split(":")[0] for x in launches("9", WORK + "/answer.json")[:2]] == ["later", names[-1]],
          launches("9", WORK + "/answer.json"))


sys.exit(main())
