"""arrow.py - Arrow arrays as inputs of a robot, and actions as Arrow arrays.

Pictures are what dora's camera nodes send: the bytes of all pixels, with `width`, `height` and
`encoding` in the metadata. Arrays that NumPy can read where they lie are not copied.
"""

import numpy as np
import pyarrow as pa


class Unusable(ValueError):
    """An array that is no value of an input; the message says why."""


def _picture(value, metadata):
    encoding = metadata.get("encoding", "rgb8")
    if encoding not in ("rgb8", "bgr8"):
        raise Unusable(f"a picture's encoding is '{encoding!s:.40}'; rgb8 and bgr8 are read")
    height, width = metadata.get("height"), metadata.get("width")
    sides = type(height) is int and type(width) is int and height > 0 and width > 0  # a bool is an int, too
    if not sides or len(value) != 3 * height * width:
        raise Unusable(f"{len(value)} bytes are no picture of {width} x {height} pixels in {encoding}")
    pixels = value.to_numpy(zero_copy_only=False).reshape(height, width, 3)
    return pixels if encoding == "rgb8" else np.ascontiguousarray(pixels[:, :, ::-1])


def value_of(value, metadata):
    """A str of one text; uint8 [height, width, 3] of a picture; [n] float32 or float64 of numbers.

    value: a pyarrow.Array without nulls. Raises Unusable.
    """
    if not isinstance(value, pa.Array):
        raise Unusable(f"a {type(value).__name__} is no Arrow array")
    kind = value.type
    if value.null_count or pa.types.is_null(kind):
        raise Unusable("a value is missing (null)")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if len(value) != 1:
            raise Unusable(f"{len(value)} texts came in one message; one is needed")
        return value[0].as_py()
    if pa.types.is_uint8(kind) and "width" in metadata:
        return _picture(value, metadata)
    if not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        raise Unusable(f"an array of {kind} is neither numbers nor a text")
    numbers = value.to_numpy(zero_copy_only=False)
    return numbers if pa.types.is_float32(kind) else np.ascontiguousarray(numbers, np.float64)


def array_of(actions):
    """float64 [rows * columns] of actions [rows, columns], row after row; no copy."""
    return pa.array(np.ascontiguousarray(actions, np.float64).reshape(-1))
