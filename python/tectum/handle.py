"""handle.py - an open engine, or a robot's client: which calls run in it, and its end.

The engine may be closed only when no call runs. So each thread holds a lock of its own while it is
in a call, and who closes waits for all of them. Calls that wait come back every few milliseconds
to look whether they should go on; this is also when Ctrl-C gets through. A call that is begun after
the end raises.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _binding
from .errors import ClosedError, TimeError, error_of

FOLDER = Path(__file__).resolve().parent
ffi: Any = _binding.ffi
lib: Any = ffi.dlopen(str(FOLDER / "libtectum.so"))

_SLICE_NS = 50_000_000
_TIME = 10  # TECTUM_TIME


def message_of(err: Any) -> str:
    """The sentence of a struct tectum_error."""
    return str(ffi.string(err.message).decode(errors="replace"))


def _end_engine(engine: Any) -> None:
    lib.tectum_close(ffi.new("struct tectum **", engine))


class Handle:
    """An engine that was opened, or one that is none any more. `end` closes it, `what` names it."""

    def __init__(
        self, engine: Any, end: Callable[[Any], None] = _end_engine, what: str = "pipeline"
    ) -> None:
        self._engine, self._end_of, self._what = engine, end, what
        self._process = os.getpid()
        self._closing = False
        self._register = threading.Lock()
        self._end = threading.RLock()  # a signal handler may close while close() runs
        self._locks: weakref.WeakSet[Any] = weakref.WeakSet()
        self._own = threading.local()

    def _lock(self) -> Any:
        """The calling thread's lock; it is locked while the thread is in a call."""
        lock = getattr(self._own, "lock", None)
        if lock is None:
            lock = threading.Lock()
            with self._register:
                self._locks.add(lock)
            self._own.lock = lock
        return lock

    def _check(self) -> None:
        if self._process != os.getpid():
            raise ClosedError(
                f"the {self._what} was opened before this process was forked, and its threads are not "
                "here: open it in this process, or start the process by spawn"
            )
        if self._closing:
            raise ClosedError(f"the {self._what} is closed")

    @property
    def closed(self) -> bool:
        return self._closing or self._process != os.getpid()

    def call(self, function: Callable[[Any], Any]) -> Any:
        """function(engine), with an engine that stays open meanwhile."""
        if self._process != os.getpid():
            self._check()
        with self._lock():
            self._check()
            return function(self._engine)

    def do(self, function: Callable[[Any, Any], int]) -> None:
        """function(engine, err); raises what its status says."""
        err = ffi.new("struct tectum_error *")
        status = self.call(lambda engine: function(engine, err))
        if status:
            raise error_of(status, message_of(err))

    def wait(self, function: Callable[[Any, int, Any], int], timeout: float | None) -> None:
        """function(engine, timeout_ns, err), again and again until the time is over."""
        err = ffi.new("struct tectum_error *")
        until = None if timeout is None else time.monotonic_ns() + int(max(timeout, 0) * 1e9)
        while True:
            left = _SLICE_NS if until is None else max(until - time.monotonic_ns(), 0)
            short = min(left, _SLICE_NS)
            status = self.call(lambda engine: function(engine, short, err))
            if not status:
                return
            if status != _TIME:
                raise error_of(status, message_of(err))
            if left <= short and until is not None:
                raise TimeError(message_of(err))

    def close(self) -> None:
        """Wait for the calls that run, then end the engine; again, and in a fork: nothing.

        Inside a signal handler whose thread is in a call it only tells that call to end; the next
        close() ends the engine.
        """
        self._closing = True
        if self._process != os.getpid() or self._lock().locked():
            return
        with self._end:
            if self._engine is None:
                return
            with self._register:
                locks = list(self._locks)
            for lock in locks:
                with lock:
                    pass
            engine, self._engine = self._engine, None
            if engine is not None:
                self._end_of(engine)


def opened(options: Any) -> Handle:
    """tectum_open with a struct tectum_options."""
    out, err = ffi.new("struct tectum **"), ffi.new("struct tectum_error *")
    status = lib.tectum_open(out, options, err)
    if status:
        raise error_of(status, message_of(err))
    return Handle(out[0])


