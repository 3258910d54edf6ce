"""ros2_bag.py - a recording written as a bag of ROS 2, and the bag read by the package rosbags: every message, with the
values that the recording has. usage: ros2_bag.py PROGRAM FOLDER"""

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from mcap_file import Recording
from serve_harness import OBSERVATION, PROGRAM, Server, check, main, test

FOLDER = Path(sys.argv[2])
DEMO = "pipelines/demo_metaworld.lua"
INPUTS = "pipelines/checkpoints/metaworld/episodes/button.jsonl"
KNOWN = get_typestore(Stores.ROS2_HUMBLE)


def tectum(*arguments, code=0):
    p = subprocess.run([PROGRAM, *(a if isinstance(a, bytes) else str(a) for a in arguments)], capture_output=True, text=True)
    check(p.returncode == code, arguments, p.returncode, p.stdout[-300:], p.stderr[-600:])
    return p


def bag(path):
    """Messages by topic: (nanoseconds, message). rosbags takes the types from the file."""
    got = {}
    with AnyReader([path]) as reader:
        for connection, time_ns, data in reader.messages():
            got.setdefault(connection.topic, []).append((time_ns, reader.deserialize(data, connection.msgtype)))
            check(KNOWN.deserialize_cdr(data, connection.msgtype) is not None)  # and as ROS 2 itself has them
        check(reader.message_count == sum(map(len, got.values())), reader.message_count)
        for c in reader.connections:
            check(c.msgcount == len(got[c.topic]), c.topic)
    return got


def recorded(name, *options):
    """A recording, its bag and the bag's messages, made once."""
    file, folder = FOLDER / (name + ".mcap"), FOLDER / name
    if not file.exists():
        tectum("run", DEMO, "--inputs", INPUTS, "--record", file, "--threads", "1")
        said = tectum("replay", file, "--ros2", folder, *options)
        check(" topics, 0 left out" in said.stdout, said.stdout)
    return Recording(file), bag(folder)


def nanoseconds(stamp):
    return stamp.sec * 10**9 + stamp.nanosec


@test
def pictures_and_inputs():
    r, got = recorded("plain")
    images = got["/images/observation/image"]
    check(len(images) == len(r.of("/images/observation/image")) == 8)
    for (time_ns, image), raw in zip(images, r.of("/images/observation/image")):
        check((image.height, image.width, image.step, image.encoding) == (64, 64, 192, "rgb8"), image)
        check(image.data.tobytes() == raw[-64 * 64 * 3:] and nanoseconds(image.header.stamp) == time_ns)
    for (_, state), kept in zip(got["/inputs/observation/state"], r.of("/inputs/observation/state"), strict=True):
        check(state.position.tolist() == kept["values"] and state.name == [f"state_{i}" for i in range(4)], state)
        check(len(state.velocity) == len(state.effort) == 0)
    check([m.data for _, m in got["/inputs/prompt"]] == [x["text"] for x in r.of("/inputs/prompt")])


@test
def chunks_are_trajectories():
    r, got = recorded("plain")
    row_us = r.of("/tectum/recording")[0]["chunks"][0]["row_us"]
    check(row_us == 12500)
    for (time_ns, m), kept in zip(got["/tectum/actions/act"], r.of("/tectum/actions/act"), strict=True):
        check([p.positions.tolist() for p in m.points] == kept["actions"])
        check([nanoseconds(p.time_from_start) for p in m.points] == [i * row_us * 1000 for i in range(16)])
        check(nanoseconds(m.header.stamp) == time_ns - 1000 * kept["age_us"])  # the observation's moment
        check(m.joint_names == [f"act_{i}" for i in range(4)] and len(m.points[0].velocities) == 0)


@test
def texts_are_whole():
    r, got = recorded("plain")
    texts, ends = {}, []
    for x in r.of("/tectum/text/talk"):
        texts[x["request"]] = texts.get(x["request"], "") + x["text"]
        ends += [x["request"]] if x["done"] else []
    check(len(ends) > 3 and [m.data for _, m in got["/tectum/text/talk"]] == [texts[i] for i in ends])
    check(json.loads(got["/tectum/recording"][0][1].data)["pipeline"] == "demo_metaworld")


@test
def frames_are_diagnostics():
    r, got = recorded("plain")
    frames = r.of("/tectum/frames")
    for (_, m), kept in zip(got["/diagnostics"], frames, strict=True):
        status, = m.status
        values = {v.key: v.value for v in status.values}
        check(status.level == 0 and status.name == "tectum: demo_metaworld" and status.message == "in time", status)
        check(int(values["frame"]) == kept["frame"] and int(values["slack_us"]) == kept["slack_us"], values)
        check(values["policy"] == "oxygen" and abs(float(values["frame_ms"]) - kept["frame_ms"]) < 1e-3 * kept["frame_ms"])


@test
def misses_are_warnings():
    file, folder = FOLDER / "late.mcap", FOLDER / "late"
    tectum("run", DEMO, "--inputs", INPUTS, "--record", file, "--threads", "1", "--set", "nodes.act.deadline.ms=0.001")
    tectum("replay", file, "--ros2", folder)
    for (_, m), kept in zip(bag(folder)["/diagnostics"], Recording(file).of("/tectum/frames"), strict=True):
        check(kept["missed"] and m.status[0].level == 1, m)
        check(m.status[0].message == f"missed its deadline, by {kept['overrun_us']} us: {kept['cause']}", m.status[0])


@test
def joints_have_names():
    _, got = recorded("named", "--joints", "x,y,z,gripper")
    check(got["/tectum/actions/act"][0][1].joint_names == ["x", "y", "z", "gripper"])
    check(got["/inputs/observation/state"][0][1].name == ["x", "y", "z", "gripper"])
    for joints in ("", "x,,y", "x,", "x" * 101, "x,y,z,x", b"x,y,z,\xff"):
        check("--joints" in tectum("replay", FOLDER / "named.mcap", "--ros2", FOLDER / "no", "--joints", joints, code=2).stderr)
    check(not (FOLDER / "no").exists())
    few = tectum("replay", FOLDER / "named.mcap", "--ros2", FOLDER / "few", "--joints", "x,y,z")
    check("has 3 numbers" in few.stderr, few.stderr)
    check(bag(FOLDER / "few")["/tectum/actions/act"][0][1].joint_names == [f"act_{i}" for i in range(4)])


@test
def a_servers_recording_too():
    file, folder = FOLDER / "served.mcap", FOLDER / "served"
    server = Server(DEMO, "--late-ok", "--record", str(file))
    c = server.connect()
    for _ in range(3):
        c.infer({**OBSERVATION, "odd name/2nd": OBSERVATION["observation/state"]})
    server.end()
    tectum("replay", file, "--ros2", folder)
    got = bag(folder)
    check(len(got["/tectum/actions/act"]) == 3 and len(got["/images/observation/wrist_image"]) == 3, list(got))


def record(opcode, content):
    return struct.pack("<BQ", opcode, len(content)) + content


def text(s):
    return struct.pack("<I", len(s.encode())) + s.encode()


def file_of(*messages):
    """An MCAP file without chunks of messages (topic, encoding, data)."""
    data = b"\x89MCAP0\r\n" + record(1, text("") + text(""))
    for i, (topic, encoding, body) in enumerate(messages):
        data += record(4, struct.pack("<HH", i, 0) + text(topic) + text(encoding) + struct.pack("<I", 0))
        data += record(5, struct.pack("<HIQQ", i, 7, 10**18 + i, 10**18 + i) + body)
    path = FOLDER / "made.mcap"
    path.write_bytes(data + record(15, struct.pack("<I", 0)) + b"\x89MCAP0\r\n")
    return path


def made(name, *messages):
    tectum("replay", file_of(*[(t, "json", json.dumps(b).encode()) for t, b in messages]), "--ros2", FOLDER / name)
    return bag(FOLDER / name)


@test
def names_and_shapes_beside_the_usual():
    table = {"type": "f64", "shape": [2, 3], "values": [1, 2, 3, 4, 5, 6]}
    got = made("odd", ("/inputs/a.b/2nd//x/", {"type": "i32", "shape": [2], "values": [-5, 7]}),
               ("/inputs/a_b/2nd/x", {"type": "i32", "shape": [1], "values": [1]}), ("/inputs/rows", table),
               ("/inputs/rows", {"type": "text", "text": "h\u00e9"}), ("/session1/inputs/s", {"type": "f32", "shape": [1], "values": [0.5]}),
               ("/tectum/actions/act", {"session": 2, "age_us": None, "actions": [[1, None]]}), ("/tectum/other", {}))
    check(got["/inputs/a_b/_2nd/x"][0][1].position.tolist() == [-5, 7] and got["/inputs/a_b/_2nd/x_"][0][1].position.tolist() == [1], list(got))
    rows = got["/inputs/rows"][0][1]
    check(rows.data.tolist() == [1, 2, 3, 4, 5, 6] and [(d.size, d.stride) for d in rows.layout.dim] == [(2, 6), (3, 3)], rows)
    check(got["/inputs/rows_"][0][1].data == "h\u00e9" and got["/session1/inputs/s"][0][1].position.tolist() == [0.5])
    positions = got["/session2/tectum/actions/act"][0][1].points[0].positions
    check(positions[0] == 1 and math.isnan(positions[1]) and len(got) == 6, list(got))


@test
def what_is_cut_ends_with_a_character():
    long = "x" + "\u00e9" * 70
    got = made("long", ("/tectum/recording", {"pipeline": long}), ("/tectum/frames", {"missed": True, "cause": long}),
               ("/inputs/" + long, {"type": "i32", "shape": [1], "values": [1]}))
    status = got["/diagnostics"][0][1].status[0]
    check(status.name == "tectum: " + long[:40] and status.message.endswith(": " + long[:30]), status)
    (state,) = [m for topic, ((_, m),) in got.items() if topic.startswith("/inputs/")]
    check(state.name == [long[:50] + "_0"], state.name)
    many = made("names", *[("/inputs/" + "x" * 244 + str(i), {"type": "i32", "shape": [1], "values": [i]}) for i in range(6)])
    check(len(many) > 1 and max(map(len, many)) == 247, [len(topic) for topic in many])  # the longest that ROS 2 allows
    check("no JSON" in tectum("replay", file_of(("/tectum/frames", "cdr", b"\xff")), "--ros2", FOLDER / "bad8", code=3).stderr)


@test
def damaged_recordings_are_told():
    whole = (FOLDER / "plain.mcap").read_bytes()
    (FOLDER / "cut.mcap").write_bytes(whole[: len(whole) * 2 // 3])
    said = tectum("replay", FOLDER / "cut.mcap", "--ros2", FOLDER / "cut").stderr
    check("cut.mcap: " in said and bag(FOLDER / "cut"), said)
    for i, (topic, body) in enumerate((("/inputs/x", b"[]"), ("/inputs/x", b'{"type": "f32", "shape": [3], "values": [1]}'),
                                       ("/tectum/actions/act", b'{"actions": [[1, 2], [3]]}'), ("/tectum/frames", b"{"))):
        p = tectum("replay", file_of((topic, "json", body)), "--ros2", FOLDER / f"bad{i}", code=3)
        check(topic in p.stderr and "frame 7" in p.stderr and len(p.stderr.splitlines()) == 1, p.stderr)
        check(not (FOLDER / f"bad{i}" / "metadata.yaml").exists())
    tectum("replay", file_of(), "--ros2", FOLDER / "empty")
    check(bag(FOLDER / "empty") == {})
    check("no image" in tectum("replay", file_of(("/images/x", "json", b"{}")), "--ros2", FOLDER / "bad9", code=3).stderr)


@test
def what_is_there_stays():
    check("exists" in tectum("replay", FOLDER / "plain.mcap", "--ros2", FOLDER / "plain", code=3).stderr)
    tectum("replay", FOLDER / "plain.mcap", "--ros2", FOLDER / "x", "--sim", code=2)
    tectum("replay", FOLDER / "plain.mcap", "--joints", "x", code=2)
    tectum("replay", FOLDER / "none.mcap", "--ros2", FOLDER / "x", code=3)
    check(not (FOLDER / "x").exists())


sys.exit(main())
