"""dataset_pictures.py - pictures of a LeRobot dataset, of its tables and its videos, for dataset.py."""
import struct
import zlib

from dataset_files import Refused, needs, read_file

MAX_PICTURE = 64 << 20  # bytes
MAX_PIXELS = 1 << 25


def png(pixels):
    """A PNG of [height, width, 3] bytes; each row as the difference to the one above."""
    import numpy as np

    above = np.zeros_like(pixels)
    above[1:] = pixels[:-1]
    height, width, _ = pixels.shape
    rows = np.full((height, 1 + 3 * width), 2, np.uint8)
    rows[:, 1:] = (pixels - above).reshape(height, -1)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows.tobytes(), 3)) + chunk(b"IEND", b""))


def picture_of_cell(dataset, cell, where):
    """The file of a picture that a table holds, or names, and the end of its name."""
    data = cell.get("bytes") if isinstance(cell, dict) else None
    if data is None and isinstance(cell, dict) and isinstance(cell.get("path"), str):
        data = read_file(dataset.path(cell["path"], where), MAX_PICTURE)
    if not isinstance(data, bytes) or len(data) > MAX_PICTURE:
        raise Refused(f"{where}: holds no picture, or one of more than {MAX_PICTURE >> 20} MiB")
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND":
        return data, ".png"
    if data[:3] == b"\xff\xd8\xff" and b"\xff\xd9" in data[-64:]:
        return data, ".jpg"
    raise Refused(f"{where}: is no PNG and no JPEG, or one that was cut short")


def pictures_of_video(path, wanted, tolerance, say):
    """Pixels of the frames nearest to ascending times in seconds; each within the tolerance."""
    av = needs("av", "which reads videos")
    needs("numpy", "which PyAV gives pixels with")
    try:
        with av.open(path) as container:
            if not container.streams.video:
                raise Refused(f"{path}: holds no video")
            stream = container.streams.video[0]
            if stream.codec_context is None:
                raise Refused(f"{path}: its video is of a kind that PyAV does not read")
            if stream.width * stream.height > MAX_PIXELS:
                raise Refused(f"{path}: {stream.width} x {stream.height}: more than {MAX_PIXELS} pixels")
            # One frame early: rounding must not pass the first one by.
            container.seek(max(0, int(wanted[0] / stream.time_base) - 1), stream=stream)
            yield from nearest(container.decode(stream), wanted, tolerance, path, say)
    except (av.FFmpegError, OSError) as e:
        raise Refused(f"{path}: {getattr(e, 'strerror', None) or e}") from None


def nearest(frames, wanted, tolerance, path, say):
    before, i = None, 0

    def choose(frame):
        off = abs(frame.time - wanted[i])
        if off > tolerance:
            raise Refused(f"{path}: no picture at {wanted[i]:.4f} s: the nearest is {off:.4f} s away; "
                          f"--tolerance is {tolerance:g} s")
        say(f"\r{path[-60:]}: {i + 1} of {len(wanted)}")
        return frame.to_ndarray(format="rgb24")

    for frame in frames:
        while frame.time is not None and i < len(wanted) and wanted[i] <= frame.time:
            early = before is not None and wanted[i] - before.time < frame.time - wanted[i]
            yield choose(before if early else frame)
            i += 1
        if i == len(wanted):
            return
        before = frame if frame.time is not None else before
    while i < len(wanted):
        if before is None:
            raise Refused(f"{path}: holds no picture")
        yield choose(before)
        i += 1
