"""groot_areas.py - pictures by areas in numpy, as OpenCV's INTER_AREA: a square, its middle, a square again."""
import numpy


def cells(n, side):
    """Of n pixels those that each of fewer ones covers, with their weights."""
    scale, made = n / side, []
    for to in range(side):
        begin, end = to * scale, (to + 1) * scale
        first, last = int(numpy.ceil(begin)), min(int(numpy.floor(end)), n - 1)
        width = min(scale, n - begin)
        parts = [(first - 1, (first - begin) / width)] if first - begin > 1e-3 else []
        parts += [(i, 1 / width) for i in range(first, last)]
        parts += [(last, min(end - last, 1.0, width) / width)] if end - last > 1e-3 else []
        made.append([(i, numpy.float32(w)) for i, w in parts])
    return made


def shrunk(x, side):
    """A square by areas, in float32; four pixels to one in whole numbers, up from the half."""
    if x.shape[0] == 2 * side:
        return ((x.reshape(side, 2, side, 2, 3).astype(int).sum(axis=(1, 3)) + 2) >> 2).astype(numpy.uint8)
    weights, rows = cells(x.shape[0], side), x.astype(numpy.float32)
    across = numpy.stack([sum((rows[:, i] * w for i, w in own), numpy.float32(0)) for own in weights], axis=1)
    down = numpy.stack([sum((across[i] * w for i, w in own), numpy.float32(0)) for own in weights])
    return numpy.rint(down).astype(numpy.uint8)


def grown(x, side):
    """A square to a larger one: flat in the middle of a pixel, weights in 2048ths."""
    n = x.shape[0]
    at = [int(i * (n / side)) for i in range(side)]
    part = [numpy.float32((i + 1) - (f + 1) * (side / n)) for i, f in enumerate(at)]
    part = [0.0 if p <= 0 or f >= n - 1 else p - numpy.floor(p) for p, f in zip(part, at)]
    two = numpy.array([int(numpy.rint(numpy.float32(p) * 2048)) for p in part])
    low, high = numpy.minimum(at, n - 1), numpy.minimum(numpy.array(at) + 1, n - 1)
    wide = x[:, low].astype(int) * (2048 - two)[None, :, None] + x[:, high].astype(int) * two[None, :, None]
    sums = ((wide[low] >> 4) * (2048 - two)[:, None, None] >> 16) + ((wide[high] >> 4) * two[:, None, None] >> 16)
    return ((sums + 2) >> 2).astype(numpy.uint8)


def boxed(x):
    """In the middle of a black square; an odd difference is one pixel more behind."""
    h, w = x.shape[:2]
    side = max(h, w)
    square = numpy.zeros((side, side, 3), numpy.uint8)
    square[(side - h) // 2:(side - h) // 2 + h, (side - w) // 2:(side - w) // 2 + w] = x
    return square


def seen(x, edge, fraction):
    """Padded to a square, by areas to the edge, its middle to the edge again."""
    x = boxed(x)
    x = shrunk(x, edge) if len(x) >= edge else grown(x, edge)
    inner = int(edge * fraction)
    at = (edge - inner) // 2
    return grown(x[at:at + inner, at:at + inner], edge) if inner < edge else x
