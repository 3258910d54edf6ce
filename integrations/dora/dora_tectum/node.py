"""node.py - what a tectum node of a dataflow does with each event: inputs are kept, observations submitted, outputs sent.

One thread does all of it. An observation is answered by its deadline, so an event waits no longer
than that; texts that have ended leave behind the event, or when none has come for a while.
"""

import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import tectum

from .arrow import Unusable, array_of, value_of

KEPT = 64  # texts under way at a time; a pipeline has fewer requests
LONGEST_AGO_S = 60
TIMED_OUT = "Timeout event stream error"  # how dora says that no event came


@dataclass
class Input:
    """The newest value of an input."""

    value: Any
    sent_ns: int
    """by its sender, on the clock of tectum.now()"""
    wrong: str
    """why it is no value; else empty"""
    used: bool = False
    """it has been in an observation"""

    @property
    def lasts(self):
        """An instruction holds until there is another one; a picture or a state is of its moment."""
        return isinstance(self.value, str)


def _sent(metadata):
    """The sender's clock is the wall's, perhaps of another machine: a time that is ahead of ours, or
    long ago, tells nothing."""
    now, stamp = tectum.now(), metadata.get("timestamp")
    ago = time.time() - stamp.timestamp() if hasattr(stamp, "timestamp") else 0.0
    return now - int(ago * 1e9) if 0 <= ago < LONGEST_AGO_S else now


class TectumNode:
    """robot: a tectum.Robot. send: dora.Node.send_output. settings: of settings.py."""

    def __init__(self, robot, send, settings):
        self.robot, self.send, self.settings = robot, send, settings
        self.inputs, self.texts = {}, {}
        self.closed = set()  # inputs that nobody sends any more
        self.episode, self.began = 0, False

    def take(self, event):
        """An event of dora.Node.next; False: the node is to end, for there will be no more observations."""
        if event is None:
            return False
        kind, name = event["type"], event.get("id")
        if kind == "INPUT_CLOSED":
            self._closed(name)
        elif kind == "ERROR" and not event["error"].startswith(TIMED_OUT):
            self.error("DataflowError", event["error"].partition("\n")[0])
        elif kind == "INPUT":
            self._input(name, event["value"], event["metadata"])
        self._tell_texts()
        return kind != "STOP" and self.settings.trigger not in self.closed and not self._all_closed()

    def error(self, kind, sentence):
        self._send_one("error", sentence, {"kind": kind, "episode": self.episode})

    # --- inputs -------------------------------------------------------------------------------------

    def _input(self, name, value, metadata):
        self.closed.discard(name)  # dora may have started its sender again
        if name == "reset":
            self._reset()
        if name in self.settings.names:
            self._keep(name, value, metadata)
        if self.settings.trigger:
            due = name == self.settings.trigger
        else:
            due = name in self.settings.names and self._all(lambda kept: kept.lasts or not kept.used)
        # While the dataflow starts, not every sender has sent yet.
        self.began = self.began or self._all(lambda kept: True)
        if due and self.began:
            self._tick()

    def _all(self, holds):
        return all(name in self.inputs and holds(self.inputs[name]) for name in self.settings.names)

    def _keep(self, name, value, metadata):
        read, wrong = None, ""
        try:
            read = value_of(value, metadata)
        except Unusable as error:
            wrong = f"input '{name}': {error}"
        self.inputs[name] = Input(read, _sent(metadata), wrong)

    def _closed(self, name):
        self.closed.add(name)
        if name in self.settings.names and not self._lasts(name):
            self.inputs.pop(name, None)
            self.error("InputClosed", f"input '{name}' has ended: its sender has left")

    def _lasts(self, name):
        return name in self.inputs and self.inputs[name].lasts

    def _all_closed(self):
        return all(name in self.closed or self._lasts(name) for name in self.settings.names) and bool(self.closed)

    def _observation(self):
        """The robot's inputs, and when the oldest picture or state was sent. Raises Unusable."""
        values, now = {}, tectum.now()
        oldest, most = now, self.settings.max_age_ns
        for kept in self.inputs.values():
            kept.used = True
        for name, called in self.settings.names.items():
            if name not in self.inputs:
                raise Unusable(f"input '{name}' has ended")
            kept = self.inputs[name]
            if kept.wrong:
                raise Unusable(kept.wrong)
            values[called] = kept.value
            if kept.lasts:
                continue
            oldest = min(oldest, kept.sent_ns)
            if most and now - kept.sent_ns > most:
                raise Unusable(f"input '{name}' is {(now - kept.sent_ns) / 1e6:.0f} ms old; TECTUM_MAX_AGE_MS "
                               f"allows {most / 1e6:g}")
        return values, oldest

    # --- outputs ------------------------------------------------------------------------------------

    def _tick(self):
        """An observation and its actions; where there is none, at once what on_miss says."""
        number, deadline = None, tectum.now()
        try:
            values, seen = self._observation()
            number = self.robot.submit(values, captured_ns=seen)
            deadline = deadline + self.settings.deadline_ns if self.settings.deadline_ns else 0
        except (Unusable, tectum.ShapeError, tectum.NotFoundError, tectum.InvalidError, tectum.MalformedError) as error:
            self.error(type(error).__name__, str(error))
        for node in self.robot.nodes:
            self._actions(node, self.robot.handout(number, node=node or None, deadline_ns=deadline))

    def _actions(self, node, handed):
        rows, columns = handed.actions.shape
        self.send("actions", array_of(handed.actions), {
            "node": node, "rows": rows, "columns": columns, "source": handed.source,
            "missed": handed.missed, "observation": handed.observation, "limited": handed.limited,
            "left_out": handed.left_out,
            "age_ms": handed.age_ns / 1e6 if handed.age_ns >= 0 else -1.0, "episode": self.episode})

    def _reset(self):
        self.robot.reset()
        self.episode += 1
        self._send_one("reset", self.episode, {})

    def _tell_texts(self):
        """Texts that have ended, whole."""
        while True:
            try:
                piece = self.robot.read(timeout=0)
            except tectum.TimeError:
                return
            self.texts.setdefault(piece.request, []).append(piece.text)
            if piece.ends:
                self._send_one("text", "".join(self.texts.pop(piece.request)), {
                    "node": piece.node, "request": piece.request, "observation": piece.observation,
                    "reason": piece.reason, "episode": self.episode})
            if len(self.texts) > KEPT:  # the end of the oldest was lost
                self.texts.pop(next(iter(self.texts)))

    def _send_one(self, output, value, metadata):
        self.send(output, pa.array([value]), metadata)
