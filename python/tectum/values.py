"""values.py - an observation as the engine's inputs, without a copy.

The engine reads the memory of the arrays while a call runs. So an array has to be C-contiguous, in
native byte order and of a dtype that the engine knows; nothing is converted behind one's back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidError, MalformedError, ShapeError
from .handle import ffi, lib

_TYPES = {
    np.dtype(np.uint8): lib.TECTUM_TYPE_U8,
    np.dtype(np.float32): lib.TECTUM_TYPE_F32,
    np.dtype(np.float64): lib.TECTUM_TYPE_F64,
    np.dtype(np.int32): lib.TECTUM_TYPE_I32,
}
_MAX_RANK = 4
_EXACT = 2**53  # whole numbers up to here are exact in float64


def c_string(what: str, text: str) -> Any:
    """A text as the engine's, which ends at a NUL."""
    if not isinstance(text, str):
        raise InvalidError(f"{what}: a str is needed, not {type(text).__name__}")
    if "\0" in text:
        raise InvalidError(f"{what}: {text!r} has a NUL in it")
    try:
        return ffi.new("char[]", text.encode())
    except UnicodeEncodeError as error:
        raise MalformedError(f"{what}: {text!r} is no Unicode text: {error.reason}") from None


def _array(name: str, given: Any) -> NDArray[Any]:
    if isinstance(given, np.ndarray):
        return given
    if isinstance(given, np.generic):
        return np.asarray(given)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        if isinstance(given, int) and abs(given) > _EXACT:
            raise ShapeError(f"{name}: {given} is no float64 without loss")
        return np.asarray(given, np.float64)
    if hasattr(given, "__dlpack__"):
        try:
            return np.from_dlpack(given)
        except Exception as error:  # each library has exceptions of its own
            raise ShapeError(f"{name}: NumPy cannot read it by DLPack: {error}") from error
    raise ShapeError(
        f"{name}: a NumPy array, a number or a str is needed, not {type(given).__name__}; "
        "np.asarray(value, dtype) makes an array"
    )


def _check(name: str, array: NDArray[Any]) -> None:
    if array.dtype not in _TYPES:
        raise ShapeError(
            f"{name}: dtype {array.dtype.str} is not taken; there are uint8, float32, float64 and "
            "int32, in native byte order: convert with astype"
        )
    if array.ndim > _MAX_RANK:
        raise ShapeError(f"{name}: {array.ndim} axes; at most {_MAX_RANK} are taken")
    if not array.flags.c_contiguous:
        raise ShapeError(
            f"{name}: the array of shape {array.shape} is not C-contiguous; "
            "np.ascontiguousarray copies it"
        )


class Values:
    """Inputs for one call: ``values`` and ``n`` are valid as long as this object."""

    def __init__(self, observation: Mapping[str, Any]) -> None:
        if not isinstance(observation, Mapping):
            raise InvalidError(
                f"an observation is a dict of inputs by name, not {type(observation).__name__}"
            )
        items = list(observation.items())
        self.n = len(items)
        self.values: Any = ffi.new("struct tectum_value[]", self.n)
        self._keep: list[Any] = []
        for place, (name, given) in zip(self.values, items):
            text = c_string("an input's name", name)
            self._keep.append(text)
            place.name = text
            if isinstance(given, str):
                self._give_text(place, name, given)
            else:
                self._give_array(place, name, _array(name, given))

    def _give_text(self, place: Any, name: str, text: str) -> None:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise MalformedError(f"{name}: no Unicode text: {error.reason}") from None
        view = ffi.from_buffer(data)
        self._keep.append(view)
        place.type = lib.TECTUM_TYPE_TEXT
        place.data = view
        place.bytes = len(data)

    def _give_array(self, place: Any, name: str, array: NDArray[Any]) -> None:
        _check(name, array)
        view = ffi.from_buffer(array)
        self._keep.append(view)
        place.type = _TYPES[array.dtype]
        place.rank = array.ndim
        for axis, length in enumerate(array.shape):
            place.shape[axis] = length
        place.data = view
        place.bytes = array.nbytes
