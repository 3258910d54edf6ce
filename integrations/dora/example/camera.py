"""camera.py - two cameras and a state of a robot, from a recorded episode: one observation a tick, then it ends."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from dora import Node

EPISODES = Path(__file__).resolve().parents[3] / "pipelines/checkpoints/metaworld/episodes/inputs.safetensors"


def tensors(path, names):
    """Arrays of a SafeTensors file: uint8 and float32 alone, which the episodes are."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    about = json.loads(data[8:begin])
    types = {"U8": np.uint8, "F32": np.float32}
    return [np.frombuffer(data[begin + about[n]["data_offsets"][0]:begin + about[n]["data_offsets"][1]],
                          types[about[n]["dtype"]]).reshape(about[n]["shape"]) for n in names]


def send_picture(node, name, pixels):
    height, width, _ = pixels.shape
    node.send_output(name, pa.array(pixels.reshape(-1)), {"width": width, "height": height, "encoding": "rgb8"})


def main():
    episode = os.environ.get("EPISODE", "button")
    observations = list(zip(*tensors(EPISODES, [f"{episode}.{x}" for x in ("image", "wrist_image", "state")])))
    node = Node()
    for event in node:
        if event["type"] == "STOP" or not observations:
            break
        if event["type"] == "INPUT":
            image, wrist, state = observations.pop(0)
            send_picture(node, "image", image)
            send_picture(node, "wrist_image", wrist)
            node.send_output("state", pa.array(state))


if __name__ == "__main__":
    main()
