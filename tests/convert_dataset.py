"""convert_dataset.py - tools/convert/dataset.py on datasets that are made here, in both layouts of LeRobot, and the
result run by the program. usage: convert_dataset.py PROGRAM FOLDER; needs pyarrow, and PyAV and numpy for videos.

Two episodes of flat pictures, whose colours tell the frame. The tables of 2.1 hold pictures, those of 3.0 say where
in a video of both episodes they are. Both must come to the same inputs.
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

try:
    import av
    import numpy as np
    av.codec.Codec("libx264rgb", "w")
except (ImportError, ValueError):
    av = None

PROGRAM, W = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
CONVERTER = os.path.join(HERE, "..", "tools", "convert", "dataset.py")
CHECKPOINT = "tests/golden/pi/pi0_tiny_lerobot/checkpoint"
FPS, LENGTHS, TASKS = 10, (3, 7), ["pick up the cup", "@ put it\u2028down"]  # U+2028 ends no line of JSON
CAMERAS = {"observation.images.image": (32, 48), "observation.images.image2": (16, 16)}
count = failed = 0


def check(text, holds, said=""):
    global count, failed
    count += 1
    print(f"{'ok' if holds else 'not ok'} {count} - {text}", flush=True)
    if not holds:
        failed += 1
        print(f"# {said}", file=sys.stderr)


def skip(text, why):
    global count
    count += 1
    print(f"ok {count} - {text} # SKIP {why}", flush=True)


# --- a dataset ---------------------------------------------------------------------------------------


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def colour(camera, episode, frame):
    return (16 * frame + 8, 100 * episode + 20, 40 + 90 * list(CAMERAS).index(camera))


def state(episode, frame):
    return [f32(0.1 * frame + 0.01 * i - episode) for i in range(8)]


def flat_png(height, width, rgb):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes(rgb) * width) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def png_pixels(path):
    """[(height, width), bytes of red, green, blue] of a PNG without filters, or with that of the row above."""
    data, at, packed = open(path, "rb").read(), 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8:at + 16])
        packed += data[at + 8:at + 8 + n] if kind == b"IDAT" else b""
        at += 12 + n
    raw, above, out = zlib.decompress(packed), bytes(3 * width), b""
    for y in range(height):
        row = raw[y * (1 + 3 * width):(y + 1) * (1 + 3 * width)]
        if row[0] not in (0, 2):
            raise ValueError(f"{path}: filter {row[0]}")
        above = bytes((a + b) & 255 for a, b in zip(row[1:], above)) if row[0] == 2 else row[1:]
        out += above
    return (height, width), out


def features(kind):
    found = {"observation.state": {"dtype": "float32", "shape": [8], "names": None},
             "observation.effort": {"dtype": "float32", "shape": [1], "names": None},
             "action": {"dtype": "float32", "shape": [7], "names": None},
             "timestamp": {"dtype": "float32", "shape": [1], "names": None}}
    for name, (h, w) in CAMERAS.items():
        found[name] = {"dtype": kind, "shape": [h, w, 3], "names": ["height", "width", "channels"]}
    return found


def rows(episode, pictures):
    n = LENGTHS[episode]
    first = sum(LENGTHS[:episode])
    table = {"observation.state": pa.array([state(episode, i) for i in range(n)], pa.list_(pa.float32(), 8)),
             "observation.effort": pa.array([0.5] * n, pa.float32()),
             "action": pa.array([[f32(i + 0.1 * k) for k in range(7)] for i in range(n)], pa.list_(pa.float32())),
             "timestamp": pa.array([i / FPS for i in range(n)], pa.float32()),
             "frame_index": list(range(n)), "episode_index": [episode] * n,
             "index": [first + i for i in range(n)], "task_index": [episode] * n}
    for name, (h, w) in CAMERAS.items() if pictures else ():
        table[name] = [pictures(name, h, w, episode, i) for i in range(n)]
    return pa.table(table)


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def put_table(path, table):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(table, path)


def info(version, kind):
    return {"codebase_version": version, "robot_type": "so100", "total_episodes": 2, "fps": FPS, "chunks_size": 1000,
            "features": features(kind)}


def in_table(name, h, w, episode, frame):
    return {"bytes": flat_png(h, w, colour(name, episode, frame)), "path": f"frame_{frame:06d}.png"}


def beside(folder):
    """Pictures as files of their own, which the table names."""
    def put_one(name, h, w, episode, frame):
        path = f"images/{name}/episode_{episode:06d}/frame_{frame:06d}.png"
        put(os.path.join(folder, path), flat_png(h, w, colour(name, episode, frame)))
        return {"bytes": None, "path": path}
    return put_one


def make_2(folder, pictures=in_table):
    put(f"{folder}/meta/info.json", json.dumps(dict(
        info("v2.1", "image"), data_path="data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet")))
    put(f"{folder}/meta/tasks.jsonl", "".join(json.dumps({"task_index": i, "task": t}, ensure_ascii=False) + "\n" for i, t in enumerate(TASKS)))
    put(f"{folder}/meta/episodes.jsonl", "".join(
        json.dumps({"episode_index": i, "tasks": [TASKS[i]], "length": n}) + "\n" for i, n in enumerate(LENGTHS)))
    for episode in range(2):
        put_table(f"{folder}/data/chunk-000/episode_{episode:06d}.parquet", rows(episode, pictures))
    return folder


def make_video(path, name, h, w, episodes):
    """Frames of the episodes one after the other, without loss."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with av.open(path, "w") as out:
        stream = out.add_stream("libx264rgb", rate=FPS, options={"qp": "0", "g": "4"})
        stream.width, stream.height, stream.pix_fmt = w, h, "rgb24"
        for episode in episodes:
            for i in range(LENGTHS[episode]):
                frame = av.VideoFrame.from_ndarray(
                    np.broadcast_to(np.array(colour(name, episode, i), np.uint8), (h, w, 3)).copy(), format="rgb24")
                for packet in stream.encode(frame):
                    out.mux(packet)
        for packet in stream.encode():
            out.mux(packet)


def make_3(folder):
    put(f"{folder}/meta/info.json", json.dumps(info("v3.0", "video")))
    put_table(f"{folder}/meta/tasks.parquet", pa.table({"task_index": [0, 1], "__index_level_0__": TASKS}))
    columns = {"episode_index": [0, 1], "length": list(LENGTHS), "data/chunk_index": [0, 0], "data/file_index": [0, 0],
               "dataset_from_index": [0, LENGTHS[0]], "dataset_to_index": [LENGTHS[0], sum(LENGTHS)]}
    for name, (h, w) in CAMERAS.items():
        columns[f"videos/{name}/chunk_index"] = columns[f"videos/{name}/file_index"] = [0, 0]
        columns[f"videos/{name}/from_timestamp"] = [0.0, LENGTHS[0] / FPS]
        columns[f"videos/{name}/to_timestamp"] = [LENGTHS[0] / FPS, sum(LENGTHS) / FPS]
        make_video(f"{folder}/videos/{name}/chunk-000/file-000.mp4", name, h, w, (0, 1))
    put_table(f"{folder}/meta/episodes/chunk-000/file-000.parquet", pa.table(columns))
    put_table(f"{folder}/data/chunk-000/file-000.parquet", pa.concat_tables([rows(0, None), rows(1, None)]))
    return folder


def make_2_video(folder):
    make_2(folder, None)
    put(f"{folder}/meta/info.json", json.dumps(info("v2.1", "video")))
    for name, (h, w) in CAMERAS.items():
        for episode in range(2):
            make_video(f"{folder}/videos/chunk-000/{name}/episode_{episode:06d}.mp4", name, h, w, (episode,))
    return folder


# --- what becomes of it ------------------------------------------------------------------------------


def convert(*words, env=None):
    run = subprocess.run([sys.executable, CONVERTER, *words], capture_output=True, text=True, timeout=120,
                         env=dict(os.environ, **(env or {})))
    return run.returncode, run.stdout, run.stderr


def lines_of(folder):
    return [json.loads(line) for line in open(f"{folder}/inputs.jsonl", encoding="utf-8")]


def same_inputs(out, episode, frames):
    """Whether the folder has those frames of the episode: numbers, task, pixels, times, recorded actions."""
    lines, about = lines_of(out), json.load(open(f"{out}/episode.json"))
    assert len(lines) == len(frames), lines
    for line, i in zip(lines, frames):
        assert line["observation.state"] == state(episode, i), line
        assert line["task"] == ["pick up the cup", "@@ put it\u2028down"][episode], line
        for name, (h, w) in CAMERAS.items():
            path = line[name]
            assert path[0] == "@", path
            size, pixels = png_pixels(os.path.join(out, path[1:]))
            assert size == (h, w) and pixels == bytes(colour(name, episode, i)) * (h * w), (name, i, size, pixels[:3])
    assert about["frame_index"] == list(frames), about
    assert about["timestamp"] == [f32(i / FPS) for i in frames], about
    assert about["action"] == [[f32(i + 0.1 * k) for k in range(7)] for i in frames], about


def check_inputs(text, run, out, episode, frames):
    try:
        assert run[0] == 0, run
        same_inputs(out, episode, frames)
        check(text, True)
    except (AssertionError, OSError, KeyError, ValueError) as e:
        check(text, False, f"{type(e).__name__}: {str(e)[:600]} {run}")


def actions(*words):
    run = subprocess.run([PROGRAM, "run", CHECKPOINT, "--threads", "1", "--format", "json", "--seed", "1", *words],
                         capture_output=True, text=True, timeout=120)
    return [json.loads(line)["actions"] for line in run.stdout.splitlines()], run.stderr


def write_tensors(path, tensors):
    """name: (shape, bytes) of u8"""
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "U8", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    put(path, struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))


def check_run(out, episode):
    """The program's actions are those of the same observations that are given as tensors."""
    tensors, frames = {}, range(LENGTHS[episode])
    for name, (h, w) in CAMERAS.items():
        tensors[name] = ([len(frames), h, w, 3], b"".join(bytes(colour(name, episode, i)) * (h * w) for i in frames))
    write_tensors(f"{W}/pictures.safetensors", tensors)
    with open(f"{W}/direct.jsonl", "w") as file:
        for i in frames:
            line = {name: f"@pictures.safetensors#{name}[{i}]" for name in CAMERAS}
            file.write(json.dumps(dict(line, task=TASKS[episode].replace("@", "@@"), **{"observation.state": state(episode, i)})) + "\n")
    got, said = actions("--inputs", f"{out}/inputs.jsonl")
    want, said_too = actions("--inputs", f"{W}/direct.jsonl")
    check("the program runs the frames: actions of every one", len(got) == len(frames) and all(got), said)
    check("and they are those of the same observations as tensors", got == want and got[0] != got[-1], said_too)


# --- datasets that are broken ------------------------------------------------------------------------


def refused(text, folder, pattern, *words):
    """One line that names the place, exit code 3, and nothing left behind."""
    os.makedirs(f"{W}/empty", exist_ok=True)
    code, out, err = convert(folder, f"{W}/empty/out", *words)
    check(text, code == 3 and err.count("\n") == 1 and pattern in err and not out and not os.listdir(f"{W}/empty"),
          f"exit {code}: {err.strip()} {os.listdir(f'{W}/empty')}")
    shutil.rmtree(f"{W}/empty")


def edited(base, path, change):
    """A copy of the dataset, one file of which is changed: text of JSON, or columns of a table."""
    folder = f"{W}/edited"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    path = os.path.join(folder, path)
    if change is None:
        os.remove(path)
    elif path.endswith(".parquet") and callable(change):
        table = pq.read_table(path)
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        change(columns)
        put_table(path, pa.table(columns))
    elif callable(change):
        found = json.loads(open(path).read())
        change(found)
        put(path, json.dumps(found))
    else:
        put(path, change)
    return folder


def test_broken(base):
    data, meta = "data/chunk-000/episode_000001.parquet", "meta/info.json"
    image, one = "observation.images.image", ("--episode", "1")

    def set_to(column, row, value):
        return lambda columns: columns[column].__setitem__(row, value)

    whole = open(f"{base}/{data}", "rb").read()
    for text, path, change, pattern in (
            ("no meta/info.json", meta, None, "no LeRobot dataset"),
            ("half an info.json", meta, '{"codebase_version": ', "info.json: is no JSON at line 1, column"),
            ("an info.json that is a list", meta, "[]", "info.json: codebase_version: must be a text"),
            ("an info.json of brackets", meta, "[" * 200000, "info.json: is no JSON"),
            ("another version", meta, lambda i: i.update(codebase_version="v1.6"), "'v1.6' is not read"),
            ("a rate of nothing", meta, lambda i: i.update(fps=0), "fps"),
            ("a feature without a type", meta, lambda i: i["features"]["action"].pop("dtype"), "features.action: dtype"),
            ("a path that leads out", meta, lambda i: i.update(data_path="../{episode_index}"), "leads out of the dataset"),
            ("a path of another's names", meta, lambda i: i.update(data_path="data/{nothing}"), "'{nothing}' is not known"),
            ("no such episode", "meta/episodes.jsonl", '{"episode_index": 0, "length": 3}\n', "no episode 1"),
            ("half a line of episodes", "meta/episodes.jsonl", '{"episode_index": 0, "length": 3}\n{"epi', "episodes.jsonl:2"),
            ("an episode of another length", "meta/episodes.jsonl", '{"episode_index": 1, "length": 9}\n', "7 frames"),
            ("a task that is not there", "meta/tasks.jsonl", '{"task_index": 0, "task": "a"}\n', "frame 0: task_index 1"),
            ("no table", data, None, "episode_000001.parquet: "),
            ("a table that is none", data, "no table", "episode_000001.parquet: "),
            ("a table that was cut short", data, whole[:len(whole) // 2], "episode_000001.parquet: "),
            ("a table without its end", data, whole[:-12] + whole[-4:], "episode_000001.parquet: "),
            ("no column of the state", data, lambda c: c.pop("observation.state"), "no column 'observation.state'"),
            ("a state of NaN", data, set_to("observation.state", 2, [float("nan")] * 8), "frame 2: observation.state"),
            ("a state of seven", data, set_to("observation.state", 2, [0.0] * 7), "7 numbers; meta/info.json says 8"),
            ("a state that is missing", data, set_to("observation.state", 2, None), "frame 2: observation.state"),
            ("a frame that is missing", data, set_to("frame_index", 3, 4), "frame 3: frame_index 4"),
            ("a time that goes back", data, set_to("timestamp", 3, 0.1), "frame 3: frame_index 3, timestamp 0.1"),
            ("a time of NaN", data, set_to("timestamp", 0, float("nan")), "frame 0: timestamp"),
            ("tasks by lists", data, lambda c: c.update(task_index=[[1]] * 7), "task_index: must be a whole number"),
            ("episodes by texts", data, lambda c: c.update(episode_index=["1"] * 7), "0 frames; meta/episodes says 7"),
            ("no picture", data, set_to(image, 5, {"bytes": None, "path": None}), f"frame 5: {image}: holds no picture"),
            ("a picture that is none", data, set_to(image, 5, {"bytes": b"x", "path": "a"}), "is no PNG and no JPEG"),
            ("a picture cut short", data, set_to(image, 5, {"bytes": flat_png(9, 9, (1, 2, 3))[:-8], "path": "a"}), "cut short"),
            ("a picture elsewhere", data, set_to(image, 5, {"bytes": None, "path": "/etc/passwd"}), "leads out"),
            ("a picture that is not there", data, set_to(image, 5, {"bytes": None, "path": "images/a.png"}), "images/a.png")):
        refused(text, edited(base, path, change), pattern, *one)


def test_damaged(base):
    """A table with any of its bytes changed: the inputs, or one line; never half a folder."""
    path, bad = "data/chunk-000/episode_000000.parquet", []
    whole = open(f"{base}/{path}", "rb").read()
    for i in range(12):
        at = (len(whole) - 8) * i // 12 + 5 * (i % 3)
        folder = edited(base, path, whole[:at] + bytes([whole[at] ^ 0x5a]) + whole[at + 1:])
        code, _, err = convert(folder, f"{W}/damaged")
        left = os.path.isdir(f"{W}/damaged")
        if (code, left) not in ((0, True), (3, False)) or (code and err.count("\n") != 1):
            bad.append((at, code, err[-200:]))
        shutil.rmtree(f"{W}/damaged", ignore_errors=True)
    check("a table with a changed byte: inputs or one line", not bad, bad)


def test_options(base):
    out = f"{W}/renamed"
    code, said, err = convert(base, out, "--episode", "1", "--every", "3", "--rename", "task=prompt", "--rename",
                              "observation.images.image=cam_high", "--without", "observation.effort")
    lines = lines_of(out) if code == 0 else [{}]
    check("--rename and --without name the inputs", set(lines[0]) == {
        "prompt", "cam_high", "observation.images.image2", "observation.state"}, err)
    check("--every takes each third frame", len(lines) == 3 and "3 frames at 3.33333 Hz, one in 3 taken" in said and
          json.load(open(f"{out}/episode.json"))["frame_index"] == [0, 3, 6], said)
    code, _, err = convert(base, out)
    check("a folder that is there is left alone", code == 3 and "is there already" in err and lines == lines_of(out), err)
    code, _, err = convert(base, f"{W}/nowhere/out")
    check("a folder in none is refused", code == 3 and "there is no folder" in err and err.count("\n") == 1, err)
    refused("a name that is none", base, "there is no 'state'", "--rename", "state=a")
    refused("two of one name", base, "one name", "--rename", "task=observation.state")
    refused("nothing to leave out", base, "--without: there is no 'x'", "--without", "x")
    for words in (("--every", "0"), ("--episode", "-1"), ("--rename", "a"), ("--tolerance", "nan")):
        check(f"{' '.join(words)} is refused", convert(base, f"{W}/no", *words)[0] == 2 and not os.path.exists(f"{W}/no"))


def test_ended(base):
    """Ended in the middle, it leaves nothing."""
    os.makedirs(f"{W}/ended")
    run = subprocess.Popen([sys.executable, "-c", "import sys, time, runpy; sys.path.insert(0, sys.argv[1]); "
                            "import dataset_files as d; read = d.Table.rows\n"
                            "def slow(*a):\n    for row in read(*a):\n        yield row\n        time.sleep(0.05)\n"
                            "d.Table.rows = slow; sys.argv = ['dataset.py', *sys.argv[2:]]\n"
                            "runpy.run_path(" + repr(CONVERTER) + ", run_name='__main__')",
                            os.path.dirname(CONVERTER), base, f"{W}/ended/out", "--episode", "1"],
                           stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not os.listdir(f"{W}/ended"):
        time.sleep(0.01)
    seen = os.listdir(f"{W}/ended")
    run.send_signal(signal.SIGTERM)
    err = run.communicate(timeout=60)[1]
    check("ended in the middle, it leaves nothing", seen and run.returncode == 143 and not os.listdir(f"{W}/ended"),
          f"{run.returncode} {seen} {os.listdir(f'{W}/ended')} {err}")


def test_no_package(base):
    put(f"{W}/without/pyarrow.py", "raise ImportError('not here')\n")
    code, _, err = convert(base, f"{W}/none", env={"PYTHONPATH": f"{W}/without"})
    check("without pyarrow one line names it", code == 1 and err.count("\n") == 1 and "pip install pyarrow" in err and
          not os.path.exists(f"{W}/none"), err)


def test_no_av():
    put(f"{W}/without_av/av.py", "raise ImportError('not here')\n")
    code, _, err = convert(f"{W}/three", f"{W}/none", "--without", "observation.effort",
                           env={"PYTHONPATH": f"{W}/without_av:{os.environ.get('PYTHONPATH', '')}"})
    check("without PyAV one line names it, and nothing is left", code == 1 and err.count("\n") == 1 and
          "pip install av" in err and not os.path.exists(f"{W}/none"), err)


def test_videos():
    whole, frames = ("--episode", "1", "--without", "observation.effort"), range(LENGTHS[1])
    check_inputs("3.0, videos of both episodes in one file", convert(make_3(f"{W}/three"), f"{W}/out_3", *whole),
                 f"{W}/out_3", 1, frames)
    first = convert(f"{W}/three", f"{W}/out_3_first")
    check_inputs("3.0, the first episode", first, f"{W}/out_3_first", 0, range(LENGTHS[0]))
    check_inputs("3.0, every second frame", convert(f"{W}/three", f"{W}/out_3_second", "--every", "2", *whole),
                 f"{W}/out_3_second", 1, frames[::2])
    check_inputs("2.1, a video an episode", convert(make_2_video(f"{W}/two_video"), f"{W}/out_2_video", *whole),
                 f"{W}/out_2_video", 1, frames)
    check("both layouts come to the same inputs", lines_of(f"{W}/out_3") == lines_of(f"{W}/out_2_video"))
    check_run(f"{W}/out_3", 1)
    test_no_av()
    episodes = "meta/episodes/chunk-000/file-000.parquet"

    def late(columns):
        for name in CAMERAS:
            columns[f"videos/{name}/from_timestamp"][1] += 0.03

    refused("pictures that are not at their times", edited(f"{W}/three", episodes, late), "the nearest is 0.0300 s away",
            *whole)
    check_inputs("but with a tolerance", convert(f"{W}/edited", f"{W}/out_late", "--tolerance", "0.04", *whole),
                 f"{W}/out_late", 1, frames)
    video = f"{W}/three/videos/observation.images.image/chunk-000/file-000.mp4"
    data = open(video, "rb").read()
    for text, change, pattern in (("a video that is none", b"no video", "file-000.mp4: "),
                                  ("a video that was cut short", data[:len(data) // 2], "file-000.mp4: "),
                                  ("no video", None, "file-000.mp4: ")):
        refused(text, edited(f"{W}/three", os.path.relpath(video, f"{W}/three"), change), pattern, *whole)
    refused("a part of a video behind its end",
            edited(f"{W}/three", episodes, lambda c: c[f"videos/{list(CAMERAS)[0]}/from_timestamp"].__setitem__(1, 9.0)),
            "no picture at 9.0000 s", *whole)
    refused("a row of episodes without a number", edited(f"{W}/three", episodes, lambda c: c["length"].__setitem__(1, None)),
            "episode 1: length: must be a whole number", *whole)


def main():
    whole, frames = ("--episode", "1", "--without", "observation.effort"), range(LENGTHS[1])
    base = make_2(f"{W}/two")
    check_inputs("2.1, pictures in the table", convert(base, f"{W}/out_2", *whole), f"{W}/out_2", 1, frames)
    make_2(f"{W}/files", beside(f"{W}/files"))
    check_inputs("2.1, pictures beside it", convert(f"{W}/files", f"{W}/out_files", *whole), f"{W}/out_files", 1, frames)
    check_run(f"{W}/out_2", 1)
    test_options(base)
    test_broken(base)
    test_damaged(base)
    test_ended(base)
    test_no_package(base)
    if av:
        test_videos()
    else:
        skip("datasets with videos", "no PyAV with numpy and libx264rgb")
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


main()
