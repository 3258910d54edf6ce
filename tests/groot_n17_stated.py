"""groot_n17_stated.py - what stands around GR00T N1.7's network in numpy, by the formulas of lerobot 0.6.1's
policies/groot/processor_groot.py; tests/fixtures/make_groot_n17_folder.py compares it with that code.

`pack`, `sees` and `unpack` are the configurations of the steps, `stats` the statistics beside them.
"""
import numpy

import groot_areas as areas

F = numpy.float32


# --- pictures ------------------------------------------------------------------------------------

def keys(x):
    """Cubic convolution (Keys 1981), a = -0.5."""
    x = abs(x)
    return (1.5 * x - 2.5) * x * x + 1 if x < 1 else ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


def weights(n, side):
    """Of n pixels those of each of `side` ones, by weights of 16 bits, and the bits behind their point."""
    scale = n / side
    wide, made = max(scale, 1.0), []
    for i in range(side):
        at = (i + 0.5) * scale
        low, high = max(int(at - 2 * wide + 0.5), 0), min(int(at + 2 * wide + 0.5), n)
        w = numpy.array([keys((t + low - at + 0.5) / wide) for t in range(high - low)])
        made.append((low, w / w.sum()))
    most, bits = max(w.max() for _, w in made), 0
    while bits < 22 and int(0.5 + most * 2 ** (bits + 1)) < 2 ** 15:
        bits += 1
    return [(low, numpy.trunc(w * 2 ** bits + numpy.where(w < 0, -0.5, 0.5)).astype(int)) for low, w in made], bits


def across(x, side):
    if x.shape[1] == side:
        return x
    rows, bits = weights(x.shape[1], side)
    sums = [numpy.tensordot(x[:, low:low + len(w)].astype(int), w, axes=(1, 0)) for low, w in rows]
    return numpy.clip((numpy.stack(sums, 1) + (1 << (bits - 1))) >> bits, 0, 255).astype(numpy.uint8)


def bicubic(x, height, width):
    """As torch resizes bytes on a CPU, with antialias."""
    return across(across(x, width).transpose(1, 0, 2), height).transpose(1, 0, 2)


def picture(x, sees):
    height, width = sees["image_target_size"]
    edge, part = sees["shortest_image_edge"] or height, sees["crop_fraction"]
    if part is None and sees["image_crop_size"] is not None:
        part = sees["image_crop_size"][0] / height
    if sees["use_albumentations"]:
        return areas.seen(x, edge, 1.0 if part is None else part)
    if sees["letter_box_transform"]:
        x = areas.boxed(x)
    x = bicubic(x, edge, edge)
    if part is not None and 0 < part < 1:
        inner = max(1, round(edge * part))
        at = (edge - inner) // 2
        x = x[at:at + inner, at:at + inner]
    return numpy.ascontiguousarray(bicubic(x, height, width))


# --- state and actions ---------------------------------------------------------------------------

def state(value, stats, pack, size):
    x = F(value)
    if pack["normalize_min_max"]:
        low, high = (F(stats["observation.state"][name]) for name in ("min", "max"))
        moved = high != low
        x = numpy.where(moved, F(2) * (x - low) / numpy.where(moved, high - low, F(1)) - F(1), F(0))
        x = numpy.clip(x, -1, 1) if pack["clip_outliers"] else x
    return numpy.concatenate([x, numpy.zeros(size - len(x), F)])


def gripped(x, column):
    x = x.copy()
    x[:, column] = -numpy.sign(F(2) * x[:, column] - F(1))
    return x


def vector(model, stats, unpack, transform):
    x = F(model)[:, :unpack["env_action_dim"]]
    if unpack["normalize_min_max"]:
        low, high = (F(stats["action"][name]) for name in ("min", "max"))
        x = numpy.clip(x, -1, 1) if unpack["clip_normalized_action"] else x
        x = (x + F(1)) * F(0.5) * (high - low) + low
    return gripped(x, x.shape[1] - 1) if transform == "libero" and x.shape[1] >= 7 else x


def groups(model, value, pack, unpack, transform):
    m, raw = unpack["modality_config"]["action"], unpack["raw_stats"]
    x, at, first, made, grip = F(model)[:len(m["delta_indices"])], 0, {}, [], None
    for key in pack["modality_config"]["state"]["modality_keys"]:
        size = len(pack["raw_stats"]["state"][key]["mean"])
        first[key], at = F(value)[at:at + size], at + size
    at = 0
    for key, how in zip(m["modality_keys"], m["action_configs"]):
        relative = unpack["use_relative_action"] and how["rep"].lower() == "relative"
        own = raw["relative_action" if relative else "action"][key]
        percent = unpack["use_percentiles"] and not relative
        low, high = F(own["q01" if percent else "min"]), F(own["q99" if percent else "max"])
        low, high = (y[:len(x)] if y.ndim == 2 else y for y in (low, high))
        size = low.shape[-1]
        y = (numpy.clip(x[:, at:at + size], -1, 1) + F(1)) * F(0.5) * (high - low) + low
        made.append(y + first[how["state_key"] or key] if relative else y)
        grip, at = at if key == "gripper" else grip, at + size
    y = numpy.concatenate(made, axis=1)
    y = y[:, :unpack["env_action_dim"]] if unpack["env_action_dim"] else y
    return gripped(y, grip) if transform == "libero" else y
