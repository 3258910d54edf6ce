"""act_model.py - ACT of LeRobot's default sizes with random weights: a folder, inputs, and the same network as ONNX.

usage: act_model.py FOLDER CAMERAS
"""
import pathlib
import sys
import warnings

import numpy as np
import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors
from lerobot.utils.constants import OBS_IMAGES, OBS_STATE

STATE, HEIGHT, WIDTH = 14, 480, 640


class Network(torch.nn.Module):
    """Normalised state and pictures as arguments, actions out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, state, *pictures):
        return self.model({OBS_STATE: state, OBS_IMAGES: list(pictures)})[0]


def config(cameras):
    inputs = {f"observation.images.{i}": PolicyFeature(FeatureType.VISUAL, (3, HEIGHT, WIDTH)) for i in range(cameras)}
    inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (STATE,))
    return ACTConfig(input_features=inputs, output_features={"action": PolicyFeature(FeatureType.ACTION, (STATE,))}, device="cpu",
                     push_to_hub=False, pretrained_backbone_weights=None)


def save(folder, cameras):
    torch.manual_seed(0)
    c = config(cameras)
    policy = ACTPolicy(c).eval()
    policy.save_pretrained(folder)
    shape = {k: f.shape[:1] + (1, 1) * (len(f.shape) > 1) for k, f in {**c.input_features, **c.output_features}.items()}
    stats = {k: {"mean": np.zeros(s, np.float32), "std": np.ones(s, np.float32)} for k, s in shape.items()}
    for processor in make_act_pre_post_processors(c, stats):
        processor.save_pretrained(folder)
    return policy


def tensors(folder, cameras):
    """Inputs as the network takes them: state and pictures."""
    given = np.load(pathlib.Path(folder) / "inputs.npz")
    pictures = [torch.from_numpy(given[f"picture{i}"]).permute(2, 0, 1)[None].float() / 255 for i in range(cameras)]
    return torch.from_numpy(given["state"])[None], [p.contiguous() for p in pictures]


def main():
    folder, cameras = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    warnings.filterwarnings("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    policy = save(folder, cameras)
    draw = np.random.default_rng(1)
    np.savez(folder / "inputs.npz", state=draw.standard_normal(STATE).astype(np.float32),
             **{f"picture{i}": draw.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for i in range(cameras)})
    state, pictures = tensors(folder, cameras)
    names = ["state"] + [f"picture{i}" for i in range(cameras)]
    with torch.no_grad():
        torch.onnx.export(Network(policy.model), (state, *pictures), str(folder / "act.onnx"), input_names=names,
                          output_names=["actions"], opset_version=17, dynamo=False)


if __name__ == "__main__":
    main()
