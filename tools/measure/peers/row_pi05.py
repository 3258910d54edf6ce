"""row_pi05.py - pi0.5 at its released size without language: two pictures, 59 tokens, 10 steps; PyTorch on the same (valid) tokens.

Weights are random and each side's own; that the model in PyTorch computes what tectum does is judged by bench_torch.py --check.
"""
import numpy as np

from row import Row

GOAL = [1.0, 1.5]


def rows(setup):
    folder = setup.work / "pi05"
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    pictures = {f"picture{i}": draw.integers(0, 256, (224, 224, 3), np.uint8) for i in range(2)}
    np.savez(folder / "inputs.npz", joints=draw.standard_normal(7).astype(np.float32), gripper=np.zeros(1, np.float32),
             **pictures)
    names = {"picture0": "observation/exterior_image_1_left", "picture1": "observation/wrist_image_left",
             "joints": "observation/joint_position", "gripper": "observation/gripper_position"}
    what = "pi0.5, 3.3 B, 2 cameras of 224 x 224, no language"
    for rounds in (False, True):
        # rounds: what products read is rounded to bf16, as PyTorch's bf16 has it
        ours = setup.tectum(folder, "tectum, round" if rounds else "tectum", {
            "open": {"path": str(setup.root / "tools/measure/peers/pi05.lua"), "random_weights": True, "seed": 1,
                     "tokenizer": str(setup.root / "pipelines/checkpoints/metaworld/tokenizer.model"),
                     "set": {"model.round": "bf16"} if rounds else {}},
            "inputs": str(folder / "inputs.npz"), "names": names,
            "texts": {"prompt": "pick up the red cube and put it into the box beside the blue bowl"},
            "about": {"dtype": "bf16, round" if rounds else "bf16"}})
        peers = [setup.side("PyTorch, bf16", "work_pi05.py", setup.threads, "bf16")]
        yield Row("pi05_round" if rounds else "pi05", f"{what}, activations rounded" if rounds else what, ours, peers,
                  {p.name: GOAL for p in peers}, frames=1)
