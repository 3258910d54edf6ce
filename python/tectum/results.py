"""results.py - what the engine gives back.

Arrays own their memory: they stay valid after the pipeline is closed, and no two of them share any.
Times are monotonic nanoseconds, on the clock of ``tectum.now()``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidError


@dataclass(frozen=True, eq=False)
class Chunk:
    """The actions of one observation, of one action node."""

    actions: NDArray[np.float64]
    """[rows, columns] in the robot's units, in the order of execution; no rows: see ``reason``"""
    observation: int
    """number of the observation that they are of"""
    captured_ns: int
    """when that was captured"""
    released_ns: int
    """when the actions were ready"""
    missed: bool
    """later than the node's deadline, counted from the submission"""
    reason: str
    """why there are no rows: "limits", "stopped"; "left out" by the policy; of a ring
    also "eos", "reset"; else empty"""
    limited: int
    """values that were beyond the robot's limits"""

    @property
    def age_ns(self) -> int:
        """Nanoseconds from the capture to the moment the actions were ready."""
        return self.released_ns - self.captured_ns


@dataclass(frozen=True, eq=False)
class Handed:
    """What a robot is given for a tick, by its deadline."""

    actions: NDArray[np.float64]
    """[rows, columns] in the robot's units, finite; no rows: the robot has to stop"""
    source: str
    """"fresh", "held", "decayed", "stale", "zeros", "stopped" or "none" """
    observation: int
    """number of the observation that they come from; -1: none"""
    captured_ns: int
    """when that was captured; 0: there is none"""
    handed_ns: int
    """when this was decided"""
    age_ns: int
    """nanoseconds from the capture to the decision; -1: there is no observation"""
    limited: int
    """values of the observation's own actions that were beyond the robot's limits"""
    left_out: bool
    """the policy left the action node out of the frame: no miss"""

    @property
    def missed(self) -> bool:
        """The observation's own actions were not there by the deadline, or not allowed."""
        return self.source != "fresh" and not self.left_out


@dataclass(frozen=True)
class Piece:
    """One step of one request's text."""

    request: int
    observation: int
    """whose prefix it reads"""
    node: str
    """the decode node"""
    token: int | None
    """its id; None: the end of the text"""
    text: str
    """whole characters; empty without a tokenizer"""
    truncated: bool
    """at the end: pieces were lost, because they were read too late"""
    reason: str
    """at the end: "eos", "length", "ranked", or why it was dropped"""

    @property
    def ends(self) -> bool:
        """This is the last piece of its text."""
        return self.token is None


@dataclass(frozen=True)
class Text:
    """A whole text; ``str()`` of it is the text alone."""

    text: str
    request: int
    observation: int
    node: str
    tokens: tuple[int, ...]
    reason: str
    truncated: bool

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Result:
    """What ``infer`` gives: the actions of each action node, and a text if one was asked for."""

    observation: int
    """number of the observation that was submitted"""
    chunks: dict[str, Chunk]
    """by action node, in the order of declaration"""
    text: Text | None

    @property
    def first(self) -> Chunk:
        """The chunk of the pipeline's first action node; InvalidError where it has none."""
        for chunk in self.chunks.values():
            return chunk
        raise InvalidError("the pipeline has no action node")

    @property
    def actions(self) -> NDArray[np.float64]:
        """[rows, columns] of the first action node."""
        return self.first.actions

    @property
    def missed(self) -> bool:
        """The chunk of an action node was later than its deadline."""
        return any(chunk.missed for chunk in self.chunks.values())

    @property
    def age_ns(self) -> int:
        """Nanoseconds from the capture until the first action node's actions were ready."""
        return self.first.age_ns


@dataclass(frozen=True)
class Outcome:
    """What became of an ``ask`` or a ``cancel``."""

    ticket: int
    request: int
    """its number, also when it was refused"""
    refused: bool
    reason: str
    """why it was refused"""


class Ranked(NamedTuple):
    """A candidate of a score node."""

    text: str
    index: int  # type: ignore[assignment]  # in place of the tuple's method
    """its place among the node's candidates"""
    log_likelihood: float
    """NaN: the model gave none"""


@dataclass(frozen=True)
class Ranking:
    """A score node's candidates, the likeliest first."""

    request: int
    observation: int
    candidates: tuple[Ranked, ...]
