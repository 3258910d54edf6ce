"""Holds smolvla.py to LeRobot's own code in float64: python golden.py [GOLDEN]

Every case of tests/golden/smolvla whose pictures and text it can take: actions from LeRobot's pixels, ids, state and noise. Ends
with 1 where one is further away than BOUND of the largest.
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file

import smolvla

BOUND = 1e-4
CASES = ("base", "odd", "allcross")


def far(case):
    said = json.loads((case / "case.json").read_text())
    model = smolvla.load(case / said["checkpoint"], case / said["vlm"])
    inputs, expected = load_file(case / "inputs.safetensors"), load_file(case / "expected.safetensors")
    pixels = [expected[f"image{i}.pixels"] for i in range(sum(s["present"] for s in said["image_slots"]))]
    images = torch.stack([(x.permute(1, 2, 0) + 1) / 2 * 255 for x in pixels])[None]
    x = model.infer(images, expected["tokens"].long()[None], expected["state.padded"][None], inputs["noise"][None])[0]
    want = expected["x_t"][-1]
    return ((x - want).abs().max() / want.abs().max()).item()


def main():
    default = pathlib.Path(__file__).resolve().parents[4] / "tests/golden/smolvla"
    golden = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    bad = 0
    for name in CASES:
        away = far(golden / name)
        bad |= not away < BOUND
        print(f"{name}: {away:.1e} of the largest action")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
