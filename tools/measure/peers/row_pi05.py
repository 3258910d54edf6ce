"""row_pi05.py - pi0.5 at its released size without language: two pictures, 59 tokens, 10 steps; PyTorch on the same (valid) tokens.

Weights are random and each side's own; that the model in PyTorch computes what tectum does is judged by bench_torch.py --check.
"""
import numpy as np

from row import Row

GOAL = [1.0, 1.5]
# Of the model: a row, what is said of it, and fields; the first is the pipeline as it ships. PyTorch's bf16 rounds what products read to
# bf16, as the second row does.
ROWS = (("pi05", "bf16, round mixed", "", {}),
        ("pi05_round", "bf16, round", ", activations rounded", {"model.round": "bf16"}),
        ("pi05_int8", "int8", ", weights in 8 bits", {"model.quantize": "int8"}),
        ("pi05_int8_round", "int8, round int8", ", weights and activations in 8 bits", {"model.quantize": "int8", "model.round": "int8"}))


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
    for name, dtype, said, fields in ROWS:
        ours = setup.tectum(folder, f"tectum, {dtype}", {
            "open": {"path": str(setup.root / "tools/measure/peers/pi05.lua"), "random_weights": True, "seed": 1,
                     "tokenizer": str(setup.root / "pipelines/checkpoints/metaworld/tokenizer.model"),
                     "set": fields},
            "inputs": str(folder / "inputs.npz"), "names": names,
            "texts": {"prompt": "pick up the red cube and put it into the box beside the blue bowl"},
            "about": {"dtype": dtype}})
        peers = [setup.side("PyTorch, bf16", "work_pi05.py", setup.threads, "bf16")]
        yield Row(name, what + said, ours, peers, {p.name: GOAL for p in peers}, frames=1)
