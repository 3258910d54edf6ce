"""row.py - a row of a comparison, and what its sides are made of."""
import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np

from side import Side

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Setup:
    """What main.py was told. `work`: a folder that is kept, for models; `root`: the tree."""
    root: pathlib.Path
    work: pathlib.Path
    program: pathlib.Path
    threads: int
    priority: int
    cameras: list
    layers: int
    vla: pathlib.Path | None

    @property
    def python(self):
        return sys.executable

    def llama(self):
        """The source of llama.cpp, which the source package of llama-cpp-python has."""
        return next(iter(sorted(self.work.glob("llama_cpp_python-*"))))

    def side(self, name, script, *arguments, env=None):
        """A worker of this folder."""
        log = self.work / "log" / f"{name.replace(' ', '_').replace('/', '_')}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        return Side(name, [sys.executable, HERE / script, *arguments], log, self.priority, env)

    def tectum(self, folder, name, spec):
        """tectum by its Python package; spec as work_tectum.py reads it."""
        path = pathlib.Path(folder) / f"{name.replace(' ', '_')}.json"
        spec["open"].setdefault("threads", self.threads)
        spec["open"].setdefault("device", "cpu")
        path.write_text(json.dumps(spec))
        return self.side(name, "work_tectum.py", path, env={"PYTHONPATH": str(self.work / "tectum")})

    def make(self, folder, script, *arguments):
        """A script of this folder makes a model, once."""
        folder = pathlib.Path(folder)
        if not (folder / "made").exists():
            print(f"making {folder.relative_to(self.work)}", file=sys.stderr, flush=True)
            subprocess.run([sys.executable, HERE / script, folder, *map(str, arguments)], check=True, stdout=sys.stderr)
            (folder / "made").touch()
        return folder


def of_rms(ours, theirs):
    """The rms of the difference, of the rms of ours."""
    return float(np.sqrt(np.mean((theirs - ours) ** 2)) / np.sqrt(np.mean(ours ** 2)))


@dataclasses.dataclass
class Row:
    """ours and peers: sides; goals: floor and stretch of each peer's time over ours, None: none; frames: of a turn; compare:
    how far results may be apart by `apart`, None: not compared. more(row, found): further figures."""
    name: str
    what: str
    ours: Side
    peers: list
    goals: dict
    frames: int = 3
    compare: float | None = None
    results: Callable | None = None
    more: Callable | None = None
    apart: Callable = of_rms
    distances: dict = dataclasses.field(default_factory=dict)

    def saved(self, side, folder):
        path = pathlib.Path(folder) / "result.npy"
        side.ask(save=str(path))
        return np.load(path).astype(np.float64)

    def check(self, folder):
        """Raises where a peer's results are not ours: then its time means nothing."""
        if self.compare is None:
            return
        ours = self.results() if self.results else self.saved(self.ours, folder)
        for peer in self.peers:
            theirs = self.saved(peer, folder)[:ours.shape[0], :ours.shape[1]]
            apart = self.apart(ours, theirs) if theirs.shape == ours.shape else float("inf")
            self.distances[peer.name] = float(f"{apart:.2g}")
            if not apart <= self.compare:
                raise RuntimeError(f"{self.name}: {peer.name} computes something else: {apart:.2g} apart")
