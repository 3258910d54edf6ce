"""__init__.py - tectum: vision-language-action models on robots, under deadlines.

    import numpy as np
    import tectum

    with tectum.open("demo_metaworld") as robot:
        result = robot.infer({
            "observation/image": np.zeros((64, 64, 3), np.uint8),
            "observation/wrist_image": np.zeros((64, 64, 3), np.uint8),
            "observation/state": np.zeros(4, np.float32),
            "prompt": "press the button",
        }, text=True)
        result.actions      # float64 [16, 4], in the robot's units
        str(result.text)

What the engine refuses is an exception, a kind of ``tectum.Error``. All times are monotonic
nanoseconds on the clock of ``now()``; timeouts are seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ._binding import VERSION as __version__
from .client import Action, AsyncClient, ClientOptions, ClientStats
from .errors import (
    ClosedError,
    DeviceError,
    Error,
    InvalidError,
    IoError,
    MalformedError,
    NoMemoryError,
    NotFoundError,
    Place,
    PolicyError,
    ShapeError,
    Status,
    TimeError,
    UnsupportedError,
)
from .handle import FOLDER as _FOLDER
from .handle import ffi, lib, opened
from .results import Chunk, Handed, Outcome, Piece, Ranked, Ranking, Result, Text
from .robot import Pipeline, Robot
from .values import c_string

ROOT: Path = _FOLDER / "share"
"""holds the pipelines/ and policies/ that come with the package"""


def now() -> int:
    """Monotonic nanoseconds, the clock of all times here."""
    return int(lib.tectum_now())


def _pipeline_of(path: str | os.PathLike[str], root: str) -> str:
    """A file or folder as it is; a bare name is that of a pipeline of the root."""
    text = os.fspath(path)
    known = os.path.join(root, "pipelines", f"{text}.lua")
    bare = isinstance(text, str) and text != "" and os.sep not in text
    return known if bare and not os.path.exists(text) and os.path.isfile(known) else text


def _fields(set: Mapping[str, Any] | Iterable[str] | None) -> list[str]:
    if set is None:
        return []
    if isinstance(set, str):
        raise InvalidError('set: a dict, or a list of "PATH=VALUE", is needed')
    if not isinstance(set, Mapping):
        return list(set)
    words = {True: "true", False: "false"}
    return [f"{k}={words[v] if isinstance(v, bool) else v}" for k, v in set.items()]


def open(
    path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    policy: str | os.PathLike[str] | None = None,
    random_weights: bool = False,
    size: str | None = None,
    seed: int = 0,
    dtype: str | None = None,
    threads: int | None = None,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    actions: int | None = None,
    device: str | None = None,
    adapter: str | os.PathLike[str] | None = None,
    hub: str | os.PathLike[str] | None = None,
    embodiment: str | None = None,
) -> Pipeline:
    """Open a pipeline and start its frame thread; reads the checkpoint, which takes a while.

    path: a pipeline file, a folder as LeRobot saves it, or the name of a pipeline that comes with
    the package ("demo_metaworld"). What is None is as the pipeline says, or as follows.

    root: holds pipelines/ and policies/; those of the package.
    weights, tokenizer, adapter: checkpoint folder, tokenizer file, folder of a LoRA adapter.
    policy: name or file.
    random_weights, size: no weights of a checkpoint, but values drawn from ``seed``; "full", "small" or "tiny".
    seed: also of the noise that actions start from.
    dtype: "f32" or "bf16".
    threads: of the CPU, the frame thread among them; None: all.
    set: fields of the pipeline, {"nodes.act.steps": 5} or ["nodes.act.steps=5"].
    actions: rows that the robot carries out a tick, for ``handout``.
    device: "cpu", "cuda", "cuda:N"; None: a GPU where one can be used, else the CPU.
    hub: cache of Hugging Face's hub, where files that the checkpoint lacks are looked for.
    embodiment: the robot, of a checkpoint folder that knows several.

    Raises NotFoundError, MalformedError (``place`` says where in a pipeline file), NoMemoryError,
    UnsupportedError, DeviceError, IoError, PolicyError, InvalidError, ShapeError.
    """
    keep: list[Any] = []

    def c(what: str, text: str | os.PathLike[str] | None) -> Any:
        if text is None:
            return ffi.NULL
        keep.append(c_string(what, os.fspath(text)))
        return keep[-1]

    folder = os.fspath(root if root is not None else ROOT)
    options = ffi.new("struct tectum_options *")
    options.pipeline = c("path", _pipeline_of(path, folder))
    options.root = c("root", folder)
    named = {"weights": weights, "tokenizer": tokenizer, "policy": policy, "size": size}
    named |= {"dtype": dtype, "device": device, "adapter": adapter, "hub": hub}
    for name, value in (named | {"embodiment": embodiment}).items():
        setattr(options, name, c(name, value))
    fields = [c("set", field) for field in _fields(set)]
    keep.append(ffi.new("char *[]", fields))
    options.set = keep[-1]
    try:
        options.n_set, options.seed = len(fields), seed
        options.random_weights = bool(random_weights)
        options.threads, options.actions = threads or 0, actions or 0
    except (OverflowError, TypeError) as error:
        raise InvalidError(f"seed, threads or actions: {error}") from None
    return Pipeline(opened(options))


__all__ = [
    "ROOT", "Action", "AsyncClient", "Chunk", "ClientOptions", "ClientStats", "ClosedError", "DeviceError",
    "Error", "Handed", "InvalidError", "IoError", "MalformedError", "NoMemoryError", "NotFoundError",
    "Outcome", "Piece", "Pipeline", "Place", "PolicyError", "Ranked", "Ranking", "Result", "Robot",
    "ShapeError", "Status", "Text", "TimeError", "UnsupportedError", "__version__", "now", "open",
]
