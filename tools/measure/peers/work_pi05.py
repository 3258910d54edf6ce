"""work_pi05.py - a worker: pi0.5 in PyTorch, the model of bench_torch.py, with random weights: two pictures, 59 tokens, 15 actions.

usage: work_pi05.py THREADS f32|bf16
"""
import pathlib
import sys

from worker import serve, timed  # first: it keeps standard output

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import bench_torch_model as peer  # noqa: E402
from bench_torch import DTYPES, Frame  # noqa: E402

STEPS, HORIZON, PROMPT = 10, 15, 59  # tokens of row_pi05.py's prompt, which has the state in it


def main():
    torch.set_num_threads(int(sys.argv[1]))
    model = peer.random_model("pi05", "full", HORIZON, DTYPES[sys.argv[2]])
    peer.set_attention(model, "plain")
    draw = torch.Generator().manual_seed(2)
    images = torch.randint(0, 256, (2, 224, 224, 3), dtype=torch.uint8, generator=draw)
    ids = torch.randint(3, 257152, (PROMPT,), generator=draw)
    frame = Frame(model, images, ids, torch.randn(1, HORIZON, 32, generator=draw), torch.rand(1, 32, generator=draw))

    def run():
        with torch.inference_mode():
            ms, (actions, _) = timed(lambda: frame.run(STEPS))
        return ms, actions[0].float().numpy()
    serve(run, {"version": torch.__version__, "dtype": sys.argv[2]})


if __name__ == "__main__":
    main()
