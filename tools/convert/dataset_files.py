"""dataset_files.py - what a LeRobot dataset's meta/ says and its tables hold, for dataset.py."""
import json
import math
import os
import re

MAX_TEXT = 64 << 20  # bytes of a file of JSON
MAX_FRAMES = 1 << 20
DATA_2 = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO_2 = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
DATA_3 = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_3 = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
KINDS = {int: "a whole number", float: "a number", str: "a text", list: "a list", dict: "an object"}


class Refused(Exception):
    """What is no dataset, or a broken one; one sentence that begins with the file."""


def needs(module, why):
    try:
        return __import__(module, fromlist=["*"])
    except ImportError as e:
        package = {"av": "av", "numpy": "numpy"}.get(module, "pyarrow")
        raise SystemExit(f"dataset.py: needs {package}, {why}: pip install {package} ({e})") from None


# --- files of JSON -----------------------------------------------------------------------------------


def is_a(value, kind):
    if isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, (int, float)) and math.isfinite(value)
    return isinstance(value, kind)


def member(found, name, kind, where):
    """A member of an object that must be there and of that kind."""
    if not isinstance(found, dict) or not is_a(found.get(name), kind):
        raise Refused(f"{where}: {name}: must be {KINDS[kind]}")
    return found[name]


def read_file(path, limit):
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
        raise Refused(f"{path}: is no file")
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{path}: more than {limit >> 20} MiB")
    return data


def read_text(path):
    try:
        return read_file(path, MAX_TEXT).decode()
    except UnicodeDecodeError as e:
        raise Refused(f"{path}: is no UTF-8 at byte {e.start}") from None


def parse(text, where):
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise Refused(f"{where}: is no JSON at line {e.lineno}, column {e.colno}: {e.msg}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{where}: is no JSON that can be read: a number or a nesting is too large") from None


def json_lines(path):
    """The objects of a file of lines, each with the place that a message names."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield parse(line, f"{path}:{number}"), f"{path}:{number}"


# --- tables ------------------------------------------------------------------------------------------


class Table:
    """A parquet file, of which only the rows of one episode are read, some at a time."""

    def __init__(self, path):
        self.path = path
        self.parquet = needs("pyarrow.parquet", "which reads a dataset's tables")
        self.arrow = needs("pyarrow", "which reads a dataset's tables")
        if os.path.exists(path) and not os.path.isfile(path):
            raise Refused(f"{path}: is no file")
        with self.located():
            self.file = self.parquet.ParquetFile(path)
            self.names = self.file.schema_arrow.names

    def located(self):
        table = self

        class Located:
            def __enter__(self):
                pass

            def __exit__(self, kind, e, trace):
                if isinstance(e, (table.arrow.ArrowException, OSError, ValueError)):
                    text = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
                    raise Refused(f"{table.path}: {text.splitlines()[0] if text else kind.__name__}") from None

        return Located()

    def may_hold(self, group, episode):
        """Whether a row group may hold the episode; what it says of its least and largest decides."""
        row_group = self.file.metadata.row_group(group)
        for i in range(row_group.num_columns):
            column = row_group.column(i)
            limits = column.statistics if column.path_in_schema == "episode_index" else None
            if limits and limits.has_min_max and is_a(limits.min, int) and is_a(limits.max, int):
                return limits.min <= episode <= limits.max
        return True

    def rows(self, columns, episode=None):
        """Rows as dictionaries, in order; of one episode where one is given."""
        for name in columns:
            if self.names.count(name) != 1:
                raise Refused(f"{self.path}: {'no' if name not in self.names else 'more than one'} column '{name}'")
        with self.located():
            for group in range(self.file.num_row_groups):
                if episode is not None and not self.may_hold(group, episode):
                    continue
                for batch in self.file.iter_batches(64, [group], columns, use_threads=False):
                    index = batch.column("episode_index").to_pylist() if episode is not None else None
                    keep = [i for i in range(batch.num_rows) if index is None or index[i] == episode]
                    for i in keep:
                        yield {name: batch.column(name)[i].as_py() for name in columns}


# --- the two layouts ---------------------------------------------------------------------------------


class Dataset:
    """What meta/ says: features, the tasks' texts, and where the rows and videos of an episode are."""

    def __init__(self, folder):
        self.folder = folder
        self.info_path = os.path.join(folder, "meta", "info.json")
        if not os.path.isfile(self.info_path):
            raise Refused(f"{folder}: is no LeRobot dataset: no meta/info.json in it")
        self.info = parse(read_text(self.info_path), self.info_path)
        self.version = member(self.info, "codebase_version", str, self.info_path)
        if self.version not in ("v2.0", "v2.1", "v3.0"):
            raise Refused(f"{self.info_path}: codebase_version: '{self.version:.20}' is not read; v2.0, v2.1 and "
                          "v3.0 are. LeRobot has scripts that convert older datasets")
        self.fps = member(self.info, "fps", float, self.info_path)
        if not 0 < self.fps <= 10000:
            raise Refused(f"{self.info_path}: fps: must be above 0, at most 10000")
        self.features = member(self.info, "features", dict, self.info_path)
        for name in self.features:
            feature = member(self.features, name, dict, f"{self.info_path}: features")
            member(feature, "dtype", str, f"{self.info_path}: features.{name}")
            if "/" in name or "\0" in name or name in (".", "..") or not 0 < len(name) <= 200:
                raise Refused(f"{self.info_path}: features: '{name:.200}' is no name of a feature")

    def path(self, relative, where):
        """A file of the dataset; none outside. Links are followed: caches of datasets are made of them."""
        parts = relative.split("/")
        if relative.startswith("/") or ".." in parts or "\0" in relative:
            raise Refused(f"{where}: '{relative:.200}' leads out of the dataset")
        return os.path.join(self.folder, *parts)

    def template(self, name, usual, values):
        """A path that meta/info.json has with numbers left open: {name} and {name:03d}."""
        text = self.info.get(name) or usual
        where = f"{self.info_path}: {name}"
        if not isinstance(text, str):
            raise Refused(f"{where}: must be a text")

        def fill(match):
            value, width = values.get(match[1]), match[2]
            if value is None or (width and not isinstance(value, int)):
                raise Refused(f"{where}: '{match[0]:.60}' is not known")
            return f"{value:0{int(width)}d}" if width else str(value)

        return self.path(re.sub(r"\{(\w*)(?::0?(\d{1,2})d)?\}", fill, text), where)

    def tasks(self):
        """The texts of the tasks by their numbers."""
        if self.version == "v3.0":
            path = os.path.join(self.folder, "meta", "tasks.parquet")
            table = Table(path)
            # pandas names a column that was an index; LeRobot calls it task since 2025
            column = "task" if "task" in table.names else "__index_level_0__"
            found = ((row["task_index"], row[column], path) for row in table.rows(["task_index", column]))
        else:
            path = os.path.join(self.folder, "meta", "tasks.jsonl")
            found = ((member(one, "task_index", int, at), member(one, "task", str, at), at)
                     for one, at in json_lines(path))
        texts = {}
        for number, text, at in found:
            if not is_a(number, int) or not isinstance(text, str):
                raise Refused(f"{at}: a task must be a whole number and a text")
            texts[number] = text
        return texts

    def episode(self, number):
        """The files of an episode: {length, data, videos: {camera: (path, begin in seconds)}}."""
        videos = [name for name, feature in self.features.items() if feature["dtype"] == "video"]
        find = self.episode_of_tables if self.version == "v3.0" else self.episode_of_lines
        found = find(number, videos)
        if not found:
            raise Refused(f"{self.folder}: no episode {number} in meta/episodes"
                          f"{'.jsonl' if self.version != 'v3.0' else ''}; "
                          f"meta/info.json says there are {self.info.get('total_episodes')}")
        if not 0 < found["length"] <= MAX_FRAMES:
            raise Refused(f"{self.folder}: episode {number}: length {found['length']}: must be 1 to {MAX_FRAMES}")
        return found

    def episode_of_lines(self, number, videos):
        for one, at in json_lines(os.path.join(self.folder, "meta", "episodes.jsonl")):
            if member(one, "episode_index", int, at) != number:
                continue
            size = self.info.get("chunks_size", 1000)
            if not is_a(size, int) or size < 1:
                raise Refused(f"{self.info_path}: chunks_size: must be a whole number from 1")
            values = {"episode_chunk": number // size, "episode_index": number,
                      "total_episodes": self.info.get("total_episodes")}
            return {"length": member(one, "length", int, at), "data": self.template("data_path", DATA_2, values),
                    "videos": {name: (self.template("video_path", VIDEO_2, dict(values, video_key=name)), 0.0)
                               for name in videos}}
        return None

    def part_of_video(self, name, row, at):
        path = self.template("video_path", VIDEO_3, dict(at, video_key=name))
        return path, row[f"videos/{name}/from_timestamp"]

    def episode_of_tables(self, number, videos):
        folder = os.path.join(self.folder, "meta", "episodes")
        files = sorted(os.path.join(at, name) for at, _, names in os.walk(folder)
                       for name in names if name.endswith(".parquet"))
        if not files:
            raise Refused(f"{folder}: holds no tables of episodes")
        columns = ["episode_index", "length", "data/chunk_index", "data/file_index"]
        for name in videos:
            columns += [f"videos/{name}/{of}" for of in ("chunk_index", "file_index", "from_timestamp")]
        for path in files:
            for row in Table(path).rows(columns, number):
                for name in columns:
                    member(row, name, float if name.endswith("timestamp") else int, f"{path}: episode {number}")
                at = {name: {"chunk_index": row[f"{name}/chunk_index"], "file_index": row[f"{name}/file_index"]}
                      for name in ["data"] + [f"videos/{name}" for name in videos]}
                return {"length": row["length"], "data": self.template("data_path", DATA_3, at["data"]),
                        "videos": {name: self.part_of_video(name, row, at[f"videos/{name}"]) for name in videos}}
        return None
