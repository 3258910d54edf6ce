"""robot.py - a robot that a pipeline serves, and the pipeline."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidError, NotFoundError, TimeError
from .handle import Handle, ffi, lib
from .results import Chunk, Handed, Outcome, Piece, Ranked, Ranking, Result
from .texts import Inbox
from .values import Values, c_string

_NOTHING = ffi.NULL


def _word(c: Any) -> str:
    return str(ffi.string(c).decode(errors="replace"))


def _name(what: str, name: str | None) -> Any:
    return _NOTHING if not name else c_string(what, name)


def _session_of(index: int) -> Callable[[Any], Any]:
    """From an engine to the handle of one of its robots; the engine is that of the first."""
    return (lambda engine: lib.tectum_session(engine, index)) if index else (lambda engine: engine)


def _action_nodes(session: Any) -> tuple[str, ...]:
    names: list[str] = []
    while (name := lib.tectum_action(session, len(names))) != _NOTHING:
        names.append(_word(name))
    if not names and lib.tectum_rows(session) > 0:
        names.append("")
    return tuple(names)


class Robot:
    """One robot of a pipeline: its observations, actions, texts and requests.

    Every method may be called from any thread at any time. ``infer`` of one robot runs one call at
    a time, those of several robots side by side. After ``close`` of the pipeline each method raises
    ClosedError; a call that waits ends with it, too.

    Timeouts are seconds; None: as long as it takes. Then TimeError is raised.
    """

    def __init__(self, handle: Handle, index: int) -> None:
        self._handle = handle
        self._turn = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._session = _session_of(index)  # no method: Python frees what has no cycle at once
        self._inbox = Inbox(handle, self._session)
        self.index: int = index
        """its number among the pipeline's robots"""
        self.columns: int = self._about(lib.tectum_columns)
        """columns of the widest action"""
        self.rows: int = self._about(lib.tectum_rows)
        """the most rows of a chunk"""
        self.nodes: tuple[str, ...] = self._about(_action_nodes)
        """the action nodes, in order of declaration. A pipeline whose model makes its actions
        without one has a nameless one, ""; one without actions has none"""

    def _about(self, function: Callable[[Any], Any]) -> Any:
        return self._handle.call(lambda engine: function(self._session(engine)))

    def _room(self) -> tuple[NDArray[np.float64], Any, int]:
        """A new array for actions, its memory, and how many values it takes."""
        n = self.rows * self.columns
        array = np.empty(n, np.float64)
        return array, ffi.from_buffer("double[]", array, require_writable=True), n

    # --- observations and actions ---------------------------------------------------------------

    def infer(
        self,
        observation: Mapping[str, Any],
        *,
        text: bool | str = False,
        timeout: float | None = None,
        captured_ns: int = 0,
    ) -> Result:
        """Submit an observation and wait for its actions, of every action node.

        observation: the robot's inputs by name. Pictures are uint8 [height, width, 3] (RGB, any
        size), states [n] of float32, float64 or int32, texts str. The arrays are read during the
        call and not kept; they are not converted (ShapeError). Keys that the robot does not have
        are ignored, as the server ignores them.

        text: wait also for the text of a request that reads this observation: True, of any decode
        node; a name, of that node. The pipeline must begin one by itself (``every(1)``); where it
        does not, the call waits until ``timeout``.

        captured_ns: when the cameras saw it, on the clock of ``tectum.now()``; 0: now.

        Raises NotFoundError, ShapeError, InvalidError or MalformedError for an input that is
        missing or does not fit; nothing is submitted then, and the pipeline goes on.
        """
        until = None if timeout is None else time.monotonic() + timeout
        with self._turn:
            number = self.submit(observation, captured_ns=captured_ns)
            chunks = {n: self.wait(number, node=n, timeout=_left(until)) for n in self.nodes}
            said = None
            if text:
                said = self._inbox.whole(
                    lambda p: p.observation == number and (text is True or p.node == text),
                    _left(until),
                )
        return Result(number, chunks, said)

    async def infer_async(
        self,
        observation: Mapping[str, Any],
        *,
        text: bool | str = False,
        timeout: float | None = None,
        captured_ns: int = 0,
    ) -> Result:
        """``infer`` without blocking the event loop: it runs in a thread that the robot has for
        this, one call after the other. The arrays must not change until it is done. A call that is
        cancelled while it runs goes on in its thread, and its result is dropped."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="tectum")
        return await asyncio.get_running_loop().run_in_executor(
            self._executor,
            lambda: self.infer(observation, text=text, timeout=timeout, captured_ns=captured_ns),
        )

    def submit(self, observation: Mapping[str, Any], *, captured_ns: int = 0) -> int:
        """Give an observation to the frame thread, without waiting; its number, from 0 upward.

        The newest wins: one that is replaced before its frame begins is never run. Raises as
        ``infer`` does.
        """
        values = Values(observation)
        number = ffi.new("int64_t *")
        self._handle.do(
            lambda engine, err: lib.tectum_submit(
                self._session(engine), values.values, values.n, captured_ns, number, err
            )
        )
        return int(number[0])

    def wait(
        self, observation: int, *, node: str | None = None, timeout: float | None = None
    ) -> Chunk:
        """The newest actions of an action node (None: the first one), if they are of this
        observation or of a later one; else wait for such. timeout 0 only looks."""
        array, room, n = self._room()
        chunk = ffi.new("struct tectum_chunk *")
        name = _name("node", node)
        self._handle.wait(
            lambda engine, ns, err: lib.tectum_wait_for(
                self._session(engine), name, observation, ns, room, n, chunk, err
            ),
            timeout,
        )
        return Chunk(
            actions=array[: chunk.rows * chunk.columns].reshape(chunk.rows, chunk.columns),
            observation=chunk.observation,
            captured_ns=chunk.captured_ns,
            released_ns=chunk.released_ns,
            missed=bool(chunk.missed),
            reason=_word(chunk.reason),
            limited=chunk.limited,
        )

    def handout(
        self, observation: int | None, *, node: str | None = None, deadline_ns: int = 0
    ) -> Handed:
        """What the robot does in this tick: the actions of the observation if they are ready by the
        deadline, else what the pipeline's ``on_miss`` says. Returns at the deadline at the latest,
        whatever happens to the model.

        Call it once for each observation and action node, in order, from one thread, and do not
        ``infer`` or ``wait`` beside it. observation None: a tick that has none.

        deadline_ns: absolute, on the clock of ``tectum.now()``; 0: the node's own, from the
        submission on (InvalidError where it has none).
        """
        array, room, n = self._room()
        handed = ffi.new("struct tectum_handed *")
        name = _name("node", node)
        number = -1 if observation is None else observation
        if number < 0 and observation is not None:
            raise InvalidError("handout: there is no such observation; None stands for none")
        self._handle.do(
            lambda engine, err: lib.tectum_handout_of(
                self._session(engine), name, number, deadline_ns, room, n, handed, err
            )
        )
        return Handed(
            actions=array[: handed.rows * handed.columns].reshape(handed.rows, handed.columns),
            source=_word(lib.tectum_source_name(handed.source)),
            observation=handed.observation,
            captured_ns=handed.captured_ns,
            handed_ns=handed.handed_ns,
            age_ns=handed.age_ns,
            limited=handed.limited,
            left_out=bool(handed.left_out),
        )

    def reset(self) -> None:
        """Go on after a stop, and begin with an empty ring; see ``tectum_reset`` in tectum.h."""
        self._about(lib.tectum_reset)

    # --- requests and texts ---------------------------------------------------------------------

    def ask(self, node: str | None = None, *, max_tokens: int = 0, priority: int = 0) -> int:
        """Ask for a request of a decode node (None: the first one) on the next observation that is
        run; its ticket. max_tokens 0: as many as the node has. TimeError: 64 wait already."""
        ticket = ffi.new("int64_t *")
        name = _name("node", node)
        self._handle.do(
            lambda engine, err: lib.tectum_ask(
                self._session(engine), name, max_tokens, priority, ticket, err
            )
        )
        return int(ticket[0])

    def cancel(self, request: int) -> int:
        """Give a request up: its text ends with the reason "cancelled". A ticket, as of ``ask``."""
        ticket = ffi.new("int64_t *")
        self._handle.do(
            lambda engine, err: lib.tectum_cancel(self._session(engine), request, ticket, err)
        )
        return int(ticket[0])

    def asked(self, ticket: int, *, timeout: float | None = None) -> Outcome:
        """Wait for what became of a ticket. NotFoundError: never given, or 64 tickets ago."""
        out = ffi.new("struct tectum_outcome *")
        self._handle.wait(
            lambda engine, ns, err: lib.tectum_asked(self._session(engine), ticket, ns, out, err),
            timeout,
        )
        return Outcome(out.ticket, out.request, bool(out.refused), _word(out.reason))

    def read(self, *, timeout: float | None = None) -> Piece:
        """The next piece of text, over all requests in the order they were made; each piece is
        given once, to whoever asks first. Do not mix with ``infer(text=...)`` in another thread."""
        return self._inbox.next(lambda piece: True, timeout)

    def texts(self, request: int | None = None, *, timeout: float | None = None) -> Iterator[Piece]:
        """Pieces of text as they come.

        request: those of this request alone, to its end. Without it, those of all requests, until
        none has come for ``timeout`` seconds (None: until the pipeline is closed, which raises
        ClosedError). Of the pieces that nobody takes the newest 4096 are kept.
        """
        while True:
            try:
                piece = self._inbox.next(
                    lambda p: request is None or p.request == request, timeout
                )
            except TimeError:
                if request is not None:
                    raise
                return
            yield piece
            if request is not None and piece.ends:
                return

    def ranking(
        self, node: str | None = None, *, request: int = 0, timeout: float | None = None
    ) -> Ranking:
        """The newest ranking of a score node (None: the first one), if it is of this request or of
        a later one; else wait for such. NotFoundError: there is no such node."""
        name = _name("node", node)
        room = self._about(lambda session: _count_candidates(session, name))
        if room == 0:
            raise NotFoundError("ranking: there is no such score node")
        ranked, out = ffi.new("struct tectum_ranked[]", room), ffi.new("struct tectum_ranking *")
        self._handle.wait(
            lambda engine, ns, err: lib.tectum_ranking(
                self._session(engine), name, request, ns, ranked, room, out, err
            ),
            timeout,
        )
        texts = self._about(
            lambda session: [
                _word(lib.tectum_candidate(session, name, ranked[i].index)) for i in range(out.n)
            ]
        )
        pairs = [(ranked[i].index, ranked[i].log_likelihood) for i in range(out.n)]
        best = tuple(Ranked(text, *pair) for text, pair in zip(texts, pairs))
        return Ranking(out.request, out.observation, best)

    def unread(self) -> tuple[int, str]:
        """Texts so far that no prompt could be made of, and where and why of the first one, or "":
        the prefill that waited for such a text kept the prompt that it had."""
        first = ffi.new("struct tectum_error *")
        count = self._about(lambda session: lib.tectum_unread(session, first))
        return count, _word(first.message)


def _count_candidates(session: Any, name: Any) -> int:
    n = 0
    while lib.tectum_candidate(session, name, n) != _NOTHING:
        n += 1
    return n


def _left(until: float | None) -> float | None:
    return None if until is None else until - time.monotonic()


class _Other(Robot):
    """A robot beside the first."""

    def __init__(self, pipeline: Pipeline, index: int) -> None:
        super().__init__(pipeline._handle, index)
        self._pipeline = pipeline


class Pipeline(Robot):
    """An open pipeline, and the first of its robots.

    A context manager: its end closes the pipeline. One that is no longer used is closed, too, when
    Python frees it or ends.
    """

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle, 0)
        self.sessions: int = handle.call(lib.tectum_sessions)
        """how many robots the pipeline serves, ``frame { sessions = N }``"""
        self._making = threading.Lock()
        self._others: weakref.WeakValueDictionary[int, _Other] = weakref.WeakValueDictionary()
        self._finalizer = weakref.finalize(self, handle.close)

    def robot(self, index: int) -> Robot:
        """The robot of that number, from 0; the first is the pipeline. NotFoundError: no such.

        The robot keeps the pipeline open, as long as nobody closes it."""
        if not 0 <= index < self.sessions:
            raise NotFoundError(f"robot {index}: the pipeline serves {self.sessions}, from 0")
        if index == 0:
            return self
        with self._making:
            robot = self._others.get(index)
            if robot is None:
                robot = self._others[index] = _Other(self, index)
        return robot

    @property
    def closed(self) -> bool:
        """The pipeline has been closed."""
        return self._handle.closed

    def close(self) -> None:
        """Stop the frame thread and give everything back; waits for the frame that runs.

        Calls that wait in other threads end with ClosedError. Again: nothing. In a signal handler
        that interrupts a call of its own thread it only ends that call; close again after it.
        """
        self._handle.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.sessions} robots, nodes {self.nodes}"
        return f"<tectum.Pipeline: {state}>"
