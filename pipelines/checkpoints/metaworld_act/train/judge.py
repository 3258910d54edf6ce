"""What LeRobot's own policy says of recorded observations: python judge.py CHECKPOINT EPISODES

For each NAME.jsonl that play.py --record has left in EPISODES it writes NAME.expected.jsonl: the actions of each observation's
chunk in robot units, from LeRobot's ACTPolicy and its saved processors in float32. tests/act_robot.t holds tectum to them.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from lerobot.processor import PolicyProcessorPipeline
from lerobot.processor.converters import (batch_to_transition, policy_action_to_transition, transition_to_batch,
                                          transition_to_policy_action)
from lerobot.configs.policies import PreTrainedConfig
from PIL import Image
from safetensors.torch import load_file

import model


def load(folder):
    policy = model.build(PreTrainedConfig.from_pretrained(folder), False)
    policy.load_state_dict(load_file(folder / "model.safetensors"))
    before = PolicyProcessorPipeline.from_pretrained(folder, config_filename="policy_preprocessor.json",
                                                     to_transition=batch_to_transition, to_output=transition_to_batch)
    after = PolicyProcessorPipeline.from_pretrained(folder, config_filename="policy_postprocessor.json",
                                                    to_transition=policy_action_to_transition, to_output=transition_to_policy_action)
    return policy.eval(), before, after


def batch(folder, line):
    out = {}
    for key, value in json.loads(line).items():
        if isinstance(value, str):
            pixels = np.array(Image.open(folder / value[1:]))
            out[key] = torch.from_numpy(pixels).permute(2, 0, 1).float() / 255
        else:
            out[key] = torch.tensor(value)
    return out


def main():
    checkpoint, episodes = map(pathlib.Path, sys.argv[1:])
    torch.set_num_threads(1)
    policy, before, after = load(checkpoint)
    for path in sorted(episodes.glob("*.jsonl")):
        if path.name.endswith(".expected.jsonl"):
            continue
        with torch.inference_mode():
            chunks = [after(policy.predict_action_chunk(before(batch(episodes, line))))[0] for line in path.read_text().splitlines()]
        (episodes / f"{path.stem}.expected.jsonl").write_text(
            "".join(json.dumps([[round(float(x), 7) for x in row] for row in chunk]) + "\n" for chunk in chunks))
        print(f"{path.stem}: {len(chunks)} observations")


if __name__ == "__main__":
    main()
