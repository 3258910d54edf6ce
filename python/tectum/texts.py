"""texts.py - pieces of text on their way from the engine to those that want them.

The engine gives each piece once, over all requests in the order they were made. Here one thread at
a time takes pieces from it; what nobody asked for yet is kept for whoever does.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .errors import TimeError
from .handle import Handle, ffi, lib
from .results import Piece, Text

_KEPT = 4096
_LOOK = 0.05


def _piece_of(c: Any) -> Piece:
    return Piece(
        request=c.request,
        observation=c.observation,
        node=ffi.string(c.node).decode(),
        token=c.token if c.token >= 0 else None,
        text=ffi.buffer(c.text, c.bytes)[:].decode(errors="replace"),
        truncated=bool(c.truncated),
        reason=ffi.string(c.reason).decode(),
    )


class Inbox:
    """The pieces of one robot, for any number of threads."""

    def __init__(self, handle: Handle, session: Callable[[Any], Any]) -> None:
        self._handle = handle
        self._session = session
        self._kept: deque[Piece] = deque(maxlen=_KEPT)
        self._news = threading.Condition()
        self._reading = threading.Lock()  # whose holder takes the next piece from the engine

    def _take(self, wanted: Callable[[Piece], bool]) -> Piece | None:
        for i, piece in enumerate(self._kept):
            if wanted(piece):
                del self._kept[i]
                return piece
        return None

    def _read(self, timeout: float) -> None:
        c = ffi.new("struct tectum_piece *")
        self._handle.wait(
            lambda engine, ns, err: lib.tectum_read(self._session(engine), ns, c, err), timeout
        )
        with self._news:
            self._kept.append(_piece_of(c))
            self._news.notify_all()

    def next(self, wanted: Callable[[Piece], bool], timeout: float | None) -> Piece:
        """The oldest piece that is wanted; TimeError when none comes."""
        until = None if timeout is None else time.monotonic() + max(timeout, 0)
        while True:
            with self._news:
                piece = self._take(wanted)
            if piece is not None:
                return piece
            left = _LOOK if until is None else min(_LOOK, max(until - time.monotonic(), 0))
            try:
                if self._reading.acquire(blocking=False):
                    try:
                        self._read(left)
                    finally:
                        self._reading.release()
                    continue
            except TimeError:
                pass
            else:
                with self._news:
                    self._news.wait(left)
                self._handle.call(lambda engine: None)  # raises once the pipeline is closed
            if until is not None and time.monotonic() >= until:
                with self._news:
                    piece = self._take(wanted)
                if piece is None:
                    raise TimeError("no text yet")
                return piece

    def whole(self, wanted: Callable[[Piece], bool], timeout: float | None) -> Text:
        """The text of the first request with a wanted piece, to its end."""
        until = None if timeout is None else time.monotonic() + timeout
        pieces = [self.next(wanted, timeout)]
        request = pieces[0].request
        while not pieces[-1].ends:
            left = None if until is None else until - time.monotonic()
            pieces.append(self.next(lambda piece: piece.request == request, left))
        end = pieces[-1]
        return Text(
            text="".join(piece.text for piece in pieces),
            request=request,
            observation=pieces[0].observation,
            node=end.node,
            tokens=tuple(piece.token for piece in pieces if piece.token is not None),
            reason=end.reason,
            truncated=end.truncated,
        )
