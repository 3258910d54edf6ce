"""What the PyTorch model says of recorded observations: python judge.py CHECKPOINT EPISODES

For each NAME.jsonl that play.py --record has left in EPISODES it writes NAME.expected.jsonl: the actions of each observation's
chunk in robot units, in float32. tests/smolvla_robot.t holds tectum to them.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file

import folder
import smolvla
import vocabulary


def chunk(model, stats, tokens, episodes, line, noise):
    seen = json.loads(line)
    pictures = [np.array(Image.open(episodes / seen[f"observation.images.{n}"][1:])) for n in folder.CAMERAS]
    state = folder.normal(stats, folder.STATE, np.float32(seen[folder.STATE]))
    x = model.infer(torch.from_numpy(np.stack(pictures))[None], torch.tensor([vocabulary.ids(tokens, seen["task"])]),
                    torch.from_numpy(state)[None], noise[None])
    return folder.restored(stats, x[0].numpy())


def main():
    checkpoint, episodes = map(pathlib.Path, sys.argv[1:])
    torch.set_num_threads(1)
    model, stats = smolvla.load(checkpoint, checkpoint / "vlm"), folder.read_statistics(checkpoint)
    tokens = json.loads((checkpoint / "vlm/tokenizer.json").read_text())
    for path in sorted(episodes.glob("*.jsonl")):
        if path.name.endswith(".expected.jsonl"):
            continue
        noise = load_file(episodes / f"{path.stem}.noise.safetensors")["noise"]
        chunks = [chunk(model, stats, tokens, episodes, line, noise[i]) for i, line in enumerate(path.read_text().splitlines())]
        (episodes / f"{path.stem}.expected.jsonl").write_text(
            "".join(json.dumps([[round(float(x), 7) for x in row] for row in rows]) + "\n" for rows in chunks))
        print(f"{path.stem}: {len(chunks)} observations")


if __name__ == "__main__":
    main()
