"""client.py - a robot's client of `tectum serve`, which never waits for it: tectum_client.h by cffi.

The queue, the network's thread and the clocks are the C library's. That thread never needs Python's
lock, so a busy interpreter delays no chunk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidError, error_of
from .handle import Handle, ffi, lib, message_of
from .values import Values, c_string

if TYPE_CHECKING:  # the checker has it for every Python
    from typing_extensions import Unpack

_TEXTS = ("ca_file", "key", "server_name", "session_id")
_SOURCES = ("none", "fresh", "held", "zero", "substitute", "stopped")
_TIME = 10  # TECTUM_TIME

Merge = Literal[
    "latest_only", "weighted_average", "average", "conservative", "linear", "ensemble"
]
OnDry = Literal["hold", "zeros", "on_miss", "error"]
Rtc = Literal["free", "guided", "given"]


class ClientOptions(TypedDict, total=False):
    """Further options of ``AsyncClient``: members of ``struct tectum_client_options``. One that is
    None or left out has its default."""

    horizon: int | None
    queue_threshold: float | None
    blend_rows: int | None
    hold_ms: int | None
    by_motion: bool | None
    interpolate: bool | None
    left_input: str | None
    delay_input: str | None
    given_input: str | None
    given_rows: int | None
    first_delay: int | None
    key: str | None
    session_id: str | None
    deadline_ms: float | None
    reply_ms: int | None
    max_rows: int | None
    max_columns: int | None
    ca_file: str | os.PathLike[str] | None
    server_name: str | None


@dataclass(frozen=True, eq=False)
class Action:
    """What the robot does at an instant."""

    values: NDArray[np.float64] | None
    """[columns] in the robot's units; None: there is no action, stop the robot"""
    source: str
    """"fresh", "held", "zero", "substitute", "stopped" or "none" """
    chunk: int
    """number of the chunk, from 0; -1: the server's substitute"""
    observation: int
    """the chunk's, as ``observe`` numbered it"""
    captured_ns: int
    """when that was captured"""
    age_ns: int
    """nanoseconds from then on"""
    row: int
    """of that chunk"""
    left: int
    """rows in the queue behind this one"""


@dataclass(frozen=True)
class ClientStats:
    """What has happened since the start; times are nanoseconds, -1 where nothing is known."""

    connected: bool
    connections: int
    requests: int
    replies: int
    substitutes: int
    late: int
    failures: int
    dry: int
    round_trip_p50: int
    round_trip_p99: int
    delay_p50: int
    delay_p99: int
    inference_delay: int
    clock_offset: int
    clock_error: int
    seam: float
    message: str


def _end(client: Any) -> None:
    lib.tectum_client_close(ffi.new("struct tectum_client **", client))


def _word(name: str, kind: Any, word: str) -> int:
    """The number of a word among those of a Literal, which are in the order of the header's."""
    words = get_args(kind)
    if word not in words:
        raise InvalidError(f"{name}: {word!r} is none of {', '.join(words)}")
    return words.index(word)


class AsyncClient:
    """A connection to the server at ``url``, "ws://HOST:PORT" or "wss://HOST:PORT", and a queue of
    actions.

    rate_hz: rows of a chunk that are for one second. The other options are those of
    ``struct tectum_client_options`` (doc/async-client.md), by the same names: ``merge``, ``on_dry``
    and ``rtc`` are words in lower case, ``discrete`` is the columns, from 0, that are never mixed,
    and those of ``ClientOptions``.

    ``observe`` is for one thread, ``next`` for one. Raises InvalidError, NoMemoryError, and what
    ``ca_file`` is read with.
    """

    def __init__(
        self,
        url: str,
        *,
        rate_hz: float,
        merge: Merge = "latest_only",
        on_dry: OnDry = "hold",
        rtc: Rtc = "free",
        discrete: Sequence[int] = (),
        seed: int | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        given = ffi.new("struct tectum_client_options *")
        keep: list[Any] = [c_string("url", url)]
        said: dict[str, Any] = {"rate_hz": rate_hz, "merge": _word("merge", Merge, merge)}
        said |= {"on_dry": _word("on_dry", OnDry, on_dry), "rtc": _word("rtc", Rtc, rtc)}
        for name, value in (said | dict(options)).items():
            if value is None:
                continue
            if name in _TEXTS or name.endswith("_input"):
                keep.append(c_string(name, os.fspath(value) if name == "ca_file" else value))
                value = keep[-1]
            try:
                setattr(given, name, int(value) if isinstance(value, bool) else value)
            except AttributeError:
                raise InvalidError(f"AsyncClient has no option {name!r}") from None
            except (TypeError, OverflowError) as error:
                raise InvalidError(f"{name}: {error}") from None
        try:
            if seed is not None:
                keep.append(ffi.new("uint64_t *", seed))
                given.seed = keep[-1]
        except (TypeError, OverflowError) as error:
            raise InvalidError(f"seed: {error}") from None
        try:
            keep.append(ffi.new("int[]", list(discrete)))
            given.discrete, given.n_discrete = keep[-1], len(discrete)
        except (TypeError, OverflowError) as error:
            raise InvalidError(f"discrete: {error}") from None
        out, err = ffi.new("struct tectum_client **"), ffi.new("struct tectum_error *")
        status = lib.tectum_client_open(out, keep[0], given, err)
        if status:
            raise error_of(status, message_of(err))
        self._handle = Handle(out[0], _end, "client")
        self._room = given.max_columns or 64
        self._action = ffi.new("double[]", self._room)
        self._told = ffi.new("struct tectum_client_action *")

    def observe(self, observation: Mapping[str, Any], *, captured_ns: int = 0) -> int:
        """Hand an observation over, as for ``Robot.submit``; its number, from 0. It is copied, and
        sent when a chunk is to be asked for: the newest wins. captured_ns: when the cameras saw it,
        on the clock of ``tectum.now()``; 0: now. What it must hold is checked by the server."""
        values = Values(observation)
        number = ffi.new("int64_t *")
        self._handle.do(
            lambda client, err: lib.tectum_client_observe(
                client, values.values, values.n, captured_ns, number, err
            )
        )
        return int(number[0])

    def next(self, now_ns: int = 0) -> Action:
        """The action of an instant, 0: of now. Never waits."""
        told = self._told
        status = self._handle.call(
            lambda client: lib.tectum_client_next(client, now_ns, self._action, self._room, told)
        )
        if status not in (0, _TIME):
            raise error_of(status, "next: the action has more columns than max_columns")
        values = None
        if not status:
            values = np.frombuffer(ffi.buffer(self._action, told.columns * 8), np.float64).copy()
        return Action(
            values=values,
            source=_SOURCES[told.source],
            chunk=told.chunk,
            observation=told.observation,
            captured_ns=told.captured_ns,
            age_ns=told.age_ns,
            row=told.row,
            left=told.left,
        )

    def ready(self, timeout: float | None = None) -> None:
        """Wait until there is a chunk of this episode. Raises TimeError with the reason."""
        self._handle.wait(lambda client, ns, err: lib.tectum_client_ready(client, ns, err), timeout)

    def reset(self, *, end_stop: bool = False) -> None:
        """A new episode: the queue is empty at once. end_stop: the next request also ends a stop of
        the server."""
        self._handle.call(lambda client: lib.tectum_client_reset(client, int(end_stop)))

    @property
    def stats(self) -> ClientStats:
        out = ffi.new("struct tectum_client_stats *")
        self._handle.call(lambda client: lib.tectum_client_stats(client, out))
        members = {name: getattr(out, name) for name in ClientStats.__annotations__}
        members |= {"message": message_of(out), "connected": bool(out.connected)}
        return ClientStats(**members)

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def close(self) -> None:
        """End the connection and its thread; again: nothing."""
        self._handle.close()

    def __enter__(self) -> AsyncClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.close()
