"""Recorded observations, and what PyTorch makes of them in float32: python cases.py CHECKPOINT OUT [--seed 700000]

The model presses the sliding button of one seed, with an action for each control step. Every 8th observation is kept: OUT/slide.jsonl
names the pictures for `tectum run --inputs`, OUT/slide.expected.jsonl has an action a line. tests/token_robot.t holds tectum to them.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
from PIL import Image

import checkpoint
from model import BINS, centres

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "tools/demo"))        # the simulator

from slide import Slide

SLIDE, MOST, EVERY = 0.05, 160, 8       # metres a second; control steps


def main():
    p = argparse.ArgumentParser()
    p.add_argument("checkpoint", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--seed", type=int, default=700_000)
    a = p.parse_args()
    torch.set_num_threads(1)
    a.out.mkdir(parents=True, exist_ok=True)
    sim, model = Slide(), checkpoint.load(a.checkpoint)
    sim.reset(a.seed, SLIDE)
    prompt = torch.tensor(checkpoint.prompt_ids(a.checkpoint, sim.task.instruction)[0])
    inputs, expected = [], []
    for step in range(MOST):
        obs = sim.observe()
        said = model.infer(torch.from_numpy(obs["observation/image"])[None], prompt)[0]
        action = centres()[(model.c.vocab - said).clamp(1, BINS) - 1].numpy()
        if step % EVERY == 0:
            name = f"slide_{len(inputs):02d}.png"
            Image.fromarray(obs["observation/image"]).save(a.out / name, optimize=True)
            inputs.append({"observation/image": f"@{name}", "prompt": obs["prompt"]})
            expected.append([round(float(x), 6) for x in action])
        if sim.step(action[[0, 1, 2, 6]]):
            break
    for name, rows in (("slide.jsonl", inputs), ("slide.expected.jsonl", expected)):
        (a.out / name).write_text("".join(json.dumps(r) + "\n" for r in rows))
    print(f"{len(inputs)} observations, pressed: {sim.success}")


if __name__ == "__main__":
    main()
