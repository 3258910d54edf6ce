"""chunks.py - from a reply to a chunk of actions, and from a chunk to what is left of it. NumPy alone."""

import numpy as np


class ActionsUnusable(RuntimeError):
    """A reply without actions that a robot may carry out."""


def actions_of(reply, width=None, source="fresh_only"):
    """The reply's actions, [rows, columns] as the server sent them, and the word of their source.

    source "fresh_only" raises ActionsUnusable for a substitute; "any" gives it to the caller.
    """
    told = reply.get("tectum") or {}
    word = told.get("source", "fresh")
    if word != "fresh" and source != "any":
        raise ActionsUnusable(f"the server sent '{word}' actions in place of fresh ones"
                              + (f" (cause {told['cause']})" if told.get("cause") else "")
                              + "; on_substitute=accept would carry them out")
    actions = reply.get("actions")
    if not isinstance(actions, np.ndarray) or actions.ndim != 2 or not actions.shape[0]:
        raise ActionsUnusable("the reply has no actions"
                              + (f", shape {list(actions.shape)}" if hasattr(actions, "shape") else ""))
    if width is not None and actions.shape[1] != width:
        raise ActionsUnusable(f"the server's actions have {actions.shape[1]} columns, the robot's "
                              f"{width}: the pipeline is of another robot")
    if not np.isfinite(actions).all():
        raise ActionsUnusable("the reply has actions that are not finite")
    return actions, word


def left_over(padded, last):
    """Rows of an earlier chunk without the padding that LeRobot's engine appends.

    The engine fills `prev_chunk_left_over` up to its horizon with zeros. A guide would pull the new
    chunk to them, so they go: the rows are looked for in `last`, the chunk that was handed out. Where
    they are not found (the caller changed them), rows of zeros at the end count as padding.
    """
    padded = np.asarray(padded)
    for start in range(len(last) if last is not None else 0):
        n = min(len(padded), len(last) - start)
        if np.array_equal(padded[:n], last[start:start + n]) and not padded[n:].any():
            return padded[:n]
    n = len(padded)
    while n and not padded[n - 1].any():
        n -= 1
    return padded[:n]


def picture_of(x, name):
    """A camera's picture as u8 [height, width, 3]; LeRobot has f4 [3, height, width] of 0 to 1.

    Exact for pictures that were u8 once: LeRobot divides by 255, and rounding finds the byte again.
    """
    x = np.asarray(x)
    if x.ndim == 3 and x.shape[0] == 3 and x.shape[2] != 3:
        x = x.transpose(1, 2, 0)
    if x.ndim != 3 or x.shape[2] != 3:
        raise ValueError(f"{name}: a picture of shape {list(x.shape)}; it must have three channels")
    if x.dtype == np.uint8:
        return np.ascontiguousarray(x)
    if x.dtype.kind != "f":
        raise ValueError(f"{name}: a picture of {x.dtype}; it must be u8, or float from 0 to 1")
    if not (x.min() >= 0 and x.max() <= 1):  # false for NaN as well
        raise ValueError(f"{name}: a picture with values from {x.min():g} to {x.max():g}; floats must "
                         "be from 0 to 1")
    return np.ascontiguousarray(np.rint(x.astype(np.float32) * 255).astype(np.uint8))
