#!/usr/bin/env python3
"""dataset.py - one episode of a LeRobot dataset to the inputs that `tectum run --inputs` reads.

    dataset.py DATASET OUT [--episode 0] [--every 1] [--rename OLD=NEW]... [--without NAME]...

DATASET is the folder with meta/info.json, of version 2.0, 2.1 or 3.0. OUT, which must not be there
yet, gets
  inputs.jsonl   an object a frame: observation.* as the dataset names them, and task
  episode.json   where the frames are from: numbers, timestamps in seconds, recorded actions
  pictures/      a folder a camera; pictures of a table as they are, those of a video as PNG
Needs pyarrow, which reads the tables; where cameras are videos PyAV and numpy too
(`pip install pyarrow av numpy`). 64 rows are held at a time, with their pictures.

A model that acts for several ticks sees fewer observations than a dataset has: --every 5 takes each
fifth frame. --rename gives an input the name that a pipeline has for it, --without leaves one out."""
import argparse
import json
import math
import os
import re
import shutil
import signal
import sys
import tempfile

sys.dont_write_bytecode = True
from dataset_files import Dataset, Refused, Table, is_a, member  # noqa: E402
from dataset_pictures import picture_of_cell, pictures_of_video, png  # noqa: E402


class Episode:
    """The frames of one episode, checked, as a folder of inputs."""

    def __init__(self, dataset, options, out, say):
        self.dataset, self.o, self.out, self.say = dataset, options, out, say
        self.where = dataset.episode(options.episode)
        self.numbers, self.cameras, self.videos = {}, [], []
        for name in options.without:
            if name != "task" and name not in dataset.features:
                raise Refused(f"--without: there is no '{name:.200}'")
        for name, feature in dataset.features.items():
            if not name.startswith("observation.") or name in options.without:
                continue
            kind, about = feature["dtype"], feature.get("info") or {}
            if isinstance(about, dict) and (about.get("is_depth_map") or about.get("video.is_depth_map")):
                print(f"dataset.py: {name}: depth, left out", file=sys.stderr)
            elif kind == "video":
                self.videos.append(name)
            elif kind == "image":
                self.cameras.append(name)
            elif re.fullmatch(r"(float|int|uint)\d+|bool", kind):
                self.numbers[name] = self.size(name, feature)
            else:
                print(f"dataset.py: {name}: is of type {kind:.20}, left out", file=sys.stderr)
        self.action = self.size("action", dataset.features["action"]) if "action" in dataset.features else 0
        known = [*self.numbers, *self.cameras, *self.videos, "task"]
        self.names = self.input_names(known)

    def size(self, name, feature):
        shape = feature.get("shape")
        if not isinstance(shape, list) or not all(is_a(n, int) and 0 < n <= 1 << 20 for n in shape):
            raise Refused(f"{self.dataset.info_path}: features.{name}: shape: must be a list of whole numbers")
        return math.prod(shape)

    def input_names(self, known):
        names = {name: name for name in known}
        for old, new in self.o.rename:
            if old not in names:
                raise Refused(f"--rename: there is no '{old:.200}'; there are {', '.join(known)}")
            names[old] = new
        if "task" in self.o.without:
            del names["task"]
        if len(set(names.values())) != len(names):
            raise Refused("--rename: two inputs would have one name")
        return names

    def values(self, name, cell, size, where):
        """The numbers of a cell as lists of lists; a number alone is a list of one."""
        count = 0

        def read(one):
            nonlocal count
            if isinstance(one, list):
                return [read(x) for x in one]
            count += 1
            if isinstance(one, bool):
                return int(one)
            if not is_a(one, float):
                raise Refused(f"{where}: {name}: must be {size} numbers that are finite")
            return one

        numbers = read(cell if isinstance(cell, list) else [cell])
        if count != size:
            raise Refused(f"{where}: {name}: {count} numbers; meta/info.json says {size}")
        return numbers

    def put_picture(self, name, number, data, end):
        # '#' in an input's path begins the name of a tensor
        plain = re.sub(r"[^\w.-]", "_", name)
        order = "" if plain == name else f"{[*self.cameras, *self.videos].index(name)}_"
        folder = os.path.join("pictures", order + plain)
        os.makedirs(os.path.join(self.out, folder), exist_ok=True)
        path = os.path.join(folder, f"{number:06d}{end}")
        with open(os.path.join(self.out, path), "wb") as file:
            file.write(data)
        return "@" + path

    def frames(self):
        """Read the rows; pictures of the table are written on the way."""
        tasks, path = self.dataset.tasks(), self.where["data"]
        columns = ["episode_index", "frame_index", "timestamp", "task_index", *self.numbers, *self.cameras]
        frames, seen, last = [], 0, -math.inf
        for row in Table(path).rows(columns + (["action"] if self.action else []), self.o.episode):
            where = f"{path}: episode {self.o.episode}, frame {seen}"
            time = member(row, "timestamp", float, where)
            if row["frame_index"] != seen or time <= last:
                raise Refused(f"{where}: frame_index {row['frame_index']}, timestamp {time:g}: "
                              "frames are not in their order, or one is missing")
            if member(row, "task_index", int, where) not in tasks:
                raise Refused(f"{where}: task_index {row['task_index']}: there is no such task in meta/tasks")
            seen, last = seen + 1, time
            if row["frame_index"] % self.o.every:
                continue
            given = {name: self.values(name, row[name], size, where) for name, size in self.numbers.items()}
            for name in self.cameras:
                data, end = picture_of_cell(self.dataset, row[name], f"{where}: {name}")
                given[name] = self.put_picture(name, len(frames), data, end)
            task = tasks[row["task_index"]]
            given["task"] = "@" + task if task.startswith("@") else task  # @ would name a file
            action = self.values("action", row["action"], self.action, where) if self.action else None
            frames.append({"index": row["frame_index"], "time": time, "given": given, "action": action})
        if seen != self.where["length"]:
            raise Refused(f"{path}: episode {self.o.episode}: {seen} frames; meta/episodes says {self.where['length']}")
        return frames

    def put_videos(self, frames):
        fps = self.dataset.fps
        for name in self.videos:
            path, begin = self.where["videos"][name]
            # Times are kept as float32: where they are the frame rate's, its own are more exact.
            exact = [round(f["time"] * fps) / fps for f in frames]
            wanted = [begin + (e if abs(e - f["time"]) < 1e-4 + 2e-7 * f["time"] else f["time"])
                      for e, f in zip(exact, frames)]
            for i, pixels in enumerate(pictures_of_video(path, wanted, self.o.tolerance, self.say)):
                frames[i]["given"][name] = self.put_picture(name, i, png(pixels), ".png")
            self.say("\n")

    def write(self):
        frames = self.frames()
        self.put_videos(frames)
        with open(os.path.join(self.out, "inputs.jsonl"), "w", encoding="utf-8") as file:
            for frame in frames:
                line = {new: frame["given"][old] for old, new in self.names.items()}
                file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        about = {"dataset": os.path.basename(os.path.abspath(self.dataset.folder)), "version": self.dataset.version,
                 "robot": self.dataset.info.get("robot_type"), "fps": self.dataset.fps, "episode": self.o.episode,
                 "length": self.where["length"], "every": self.o.every, "inputs": self.names,
                 "frame_index": [f["index"] for f in frames], "timestamp": [f["time"] for f in frames]}
        if self.action:
            about["action"] = [f["action"] for f in frames]
        with open(os.path.join(self.out, "episode.json"), "w", encoding="utf-8") as file:
            json.dump(about, file, ensure_ascii=False, allow_nan=False)
            file.write("\n")
        return len(frames)


def convert(o, say):
    """Write into a folder beside OUT, which gets OUT's name when it is whole."""
    if os.path.lexists(o.out):
        raise Refused(f"{o.out}: is there already; name another folder, or remove it")
    parent = os.path.dirname(os.path.abspath(o.out))
    if not os.path.isdir(parent):
        raise Refused(f"{o.out}: there is no folder {parent}")
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # until there is somebody to remove the folder
    fresh = tempfile.mkdtemp(prefix=".dataset-", dir=parent)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        dataset = Dataset(o.dataset)
        n = Episode(dataset, o, fresh, say).write()
        os.chmod(fresh, 0o777 & ~umask())
        os.rename(fresh, o.out)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    every = f", one in {o.every} taken" if o.every > 1 else ""
    print(f"{o.out}/inputs.jsonl: episode {o.episode}, {n} frames at {dataset.fps / o.every:g} Hz{every}")


def umask():
    old = os.umask(0)
    os.umask(old)
    return old


def renaming(text):
    old, equals, new = text.partition("=")
    if not (old and equals and new) or new.startswith("#"):
        raise argparse.ArgumentTypeError(f"'{text}' is not OLD=NEW")
    return old, new


def at_least(low, kind):
    def read(text):
        value = kind(text)
        if not low <= value < 1e9:
            raise argparse.ArgumentTypeError(f"must be from {low} on")
        return value
    read.__name__ = "number"
    return read


def main(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dataset")
    p.add_argument("out")
    p.add_argument("--episode", type=at_least(0, int), default=0, metavar="N")
    p.add_argument("--every", type=at_least(1, int), default=1, help="take only each N-th frame", metavar="N")
    p.add_argument("--rename", type=renaming, action="append", default=[], metavar="OLD=NEW")
    p.add_argument("--without", action="append", default=[], metavar="NAME", help="leave an input out")
    p.add_argument("--tolerance", type=at_least(0.0, float), default=1e-4, metavar="S",
                   help="how far a picture of a video may be from its frame's time; LeRobot has 1e-4")
    o = p.parse_args(argv)
    say = (lambda text: (sys.stderr.write(text), sys.stderr.flush())) if sys.stderr.isatty() else (lambda text: None)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # what is half is removed
    try:
        convert(o, say)
    except Refused as e:
        print(f"dataset.py: {e}", file=sys.stderr)
        return 3
    except OSError as e:
        print(f"dataset.py: {e.filename or o.out}: {e.strerror or e}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
