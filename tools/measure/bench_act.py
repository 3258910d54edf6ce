"""ACT at its full size, LeRobot in PyTorch and tectum in turn: python tools/measure/bench_act.py [--cameras 2] [--threads 2]

One random checkpoint, saved by LeRobot, is run by both: 480 x 640 pictures, chunks of 100. Rounds take turns, so that what else the
machine does falls on both. Printed are milliseconds of a frame by the clock and of processor time. PyTorch runs with its pictures
and ResNet in the order of memory that is faster here (channels last). Needs
pipelines/checkpoints/metaworld_act/train/requirements.txt.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import tempfile
import time

import numpy as np
import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors

STATE = 14


def save(folder, cameras):
    inputs = {f"observation.images.{i}": PolicyFeature(FeatureType.VISUAL, (3, 480, 640)) for i in range(cameras)}
    inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (STATE,))
    config = ACTConfig(input_features=inputs, output_features={"action": PolicyFeature(FeatureType.ACTION, (STATE,))}, device="cpu",
                       push_to_hub=False, pretrained_backbone_weights=None)
    policy = ACTPolicy(config).eval()
    policy.save_pretrained(folder)
    stats = {key: {"mean": np.zeros(f.shape[:1] + (1, 1) * (len(f.shape) > 1), np.float32),
                   "std": np.ones(f.shape[:1] + (1, 1) * (len(f.shape) > 1), np.float32)}
             for key, f in {**inputs, **config.output_features}.items()}
    for processor in make_act_pre_post_processors(config, stats):
        processor.save_pretrained(folder)
    return policy, inputs


def torch_round(policy, batch, frames):
    clock, used = [], []
    with torch.inference_mode():
        for _ in range(frames):
            begin, processor = time.perf_counter(), time.process_time()
            policy.predict_action_chunk(batch)
            clock.append(1e3 * (time.perf_counter() - begin))
            used.append(1e3 * (time.process_time() - processor))
    return clock[1:], used[1:]


def children():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (r.ru_utime + r.ru_stime)


def tectum_frames(a, folder, frames):
    before = children()
    out = subprocess.run([a.tectum, "run", folder, "--random-inputs", "1", "-n", str(frames), "--threads", str(a.threads), "--format",
                          "json"], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines() if '"end_us"' in line]
    return [1e-3 * (line["end_us"] - line["start_us"]) for line in lines], children() - before


def tectum_round(a, folder, frames):
    """Processor time of a frame: that of a run less that of a run of one frame."""
    _, one = tectum_frames(a, folder, 1)
    clock, all_used = tectum_frames(a, folder, frames)
    return clock[1:], [(all_used - one) / (frames - 1)]


def show(name, clock, used):
    print(f"{name:8s} clock p50 {np.median(clock):7.1f}  p99 {np.percentile(clock, 99):7.1f}  max {np.max(clock):7.1f}  "
          f"best {np.min(clock):7.1f}   processor time p50 {np.median(used):7.1f}  best {np.min(used):7.1f}  ({len(clock)} frames)", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tectum", default="build/release/tectum")
    p.add_argument("--cameras", type=int, default=2)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--frames", type=int, default=4, help="of a round; the first is not counted")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        policy, inputs = save(pathlib.Path(folder), a.cameras)
        policy.model.backbone.to(memory_format=torch.channels_last)
        batch = {k: torch.randn(1, *f.shape) for k, f in inputs.items()}
        batch = {k: v.contiguous(memory_format=torch.channels_last) if v.dim() == 4 else v for k, v in batch.items()}
        torches, ours = ([], []), ([], [])
        for _ in range(a.rounds):
            for all_rounds, one in ((torches, torch_round(policy, batch, a.frames)), (ours, tectum_round(a, folder, a.frames))):
                for kept, new in zip(all_rounds, one):
                    kept.extend(new)
    print(f"ACT, {a.cameras} cameras of 480 x 640, {a.threads} threads; ms")
    show("PyTorch", *torches)
    show("tectum", *ours)


if __name__ == "__main__":
    main()
