"""work_smolvla.py - a worker: SmolVLA by LeRobot in PyTorch.

usage: work_smolvla.py FOLDER CAMERAS THREADS f32|bf16
"""
import os
import sys

from worker import serve, timed  # first: it keeps standard output

import numpy as np
import torch
from lerobot.policies.smolvla.modeling_smolvla import SmolVLAPolicy


def batch_of(given, cameras, dtype):
    pictures = {f"observation.images.camera{i + 1}": torch.from_numpy(given[f"picture{i}"]).permute(2, 0, 1)[None].float() / 255
                for i in range(cameras)}
    tokens = torch.from_numpy(given["tokens"]).long()[None]
    return {"observation.state": torch.from_numpy(given["state"])[None].to(dtype), "observation.language.tokens": tokens,
            "observation.language.attention_mask": torch.ones_like(tokens, dtype=torch.bool), **pictures}


def main():
    folder, cameras, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    os.chdir(folder)
    policy = SmolVLAPolicy.from_pretrained("pretrained_model").eval().float()
    if sys.argv[4] == "bf16":  # what LeRobot has as bf16 when it loads the released file; the rest stays float32
        policy.model.vlm_with_expert.to(torch.bfloat16)
    given = np.load("inputs.npz")
    batch, noise = batch_of(given, cameras, torch.float32), torch.from_numpy(given["noise"])[None]

    def frame():
        with torch.inference_mode():
            ms, actions = timed(lambda: policy.predict_action_chunk(batch, noise=noise))
        return ms, actions[0].float().numpy()
    serve(frame, {"version": torch.__version__, "dtype": sys.argv[4]})


if __name__ == "__main__":
    main()
