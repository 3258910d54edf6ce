"""errors.py - the exceptions: one class for each status of tectum.h."""

from __future__ import annotations

import builtins
import enum
import re
from typing import NamedTuple


class Status(enum.IntEnum):
    """How a call of the engine ended, as ``enum tectum_status`` has it."""

    INVALID = 1
    MALFORMED = 2
    SHAPE = 3
    NOT_FOUND = 4
    NO_MEMORY = 5
    UNSUPPORTED = 6
    DEVICE = 7
    IO = 8
    POLICY = 9
    TIME = 10


class Place(NamedTuple):
    """Where in a text an error is; line and column count from 1."""

    file: str
    line: int
    column: int


class Error(Exception):
    """What the engine refuses or fails at; its message names the thing, the numbers, what to do.

    ``status`` is the engine's. ``place`` is set where the message begins with a place in a text.
    """

    status: Status = Status.INVALID

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        found = re.match(r"(.+?):(\d+):(\d+): ", message)
        self.place: Place | None = (
            Place(found[1], int(found[2]), int(found[3])) if found else None
        )


class InvalidError(Error, ValueError):
    """An argument that is not allowed; nothing was done."""

    status = Status.INVALID


class ClosedError(InvalidError):
    """The pipeline has been closed, or was opened by the process that this one was forked from."""


class MalformedError(Error, ValueError):
    """A file or an input that is not what it should be."""

    status = Status.MALFORMED


class ShapeError(Error, ValueError):
    """A shape, dtype or memory layout that does not fit."""

    status = Status.SHAPE


class NotFoundError(Error, LookupError):
    """There is no such file, or nothing of that name."""

    status = Status.NOT_FOUND


class NoMemoryError(Error, MemoryError):
    """The message says how much is needed, and how much there is."""

    status = Status.NO_MEMORY


class UnsupportedError(Error, NotImplementedError):
    """Valid, but this release cannot do it."""

    status = Status.UNSUPPORTED


class DeviceError(Error, RuntimeError):
    """The device has failed, for good."""

    status = Status.DEVICE


class IoError(Error, RuntimeError):
    """Reading a file failed."""

    status = Status.IO


class PolicyError(Error, RuntimeError):
    """A policy script failed."""

    status = Status.POLICY


class TimeError(Error, builtins.TimeoutError):
    """Nothing came in time."""

    status = Status.TIME


_CLASSES: dict[int, type[Error]] = {
    kind.status: kind
    for kind in (
        InvalidError,
        MalformedError,
        ShapeError,
        NotFoundError,
        NoMemoryError,
        UnsupportedError,
        DeviceError,
        IoError,
        PolicyError,
        TimeError,
    )
}


def error_of(status: int, message: str) -> Error:
    """The exception of a status; a status of a newer engine is a plain Error."""
    return _CLASSES.get(status, Error)(message)
