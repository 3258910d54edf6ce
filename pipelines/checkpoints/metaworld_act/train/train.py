"""Behaviour cloning with LeRobot's ACT: python train.py DEMOS OUT --minutes 60

ACT's own loss: L1 to the expert's chunk plus the KL divergence of the VAE's latent. For the last third of the time the norms of the
ResNet stand still, as they will at inference; what is saved is a running mean of the weights.
"""
import argparse
import copy
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

import model

HELD_OUT = 0.03         # of the demonstrations
STATE_NOISE = 0.02      # of a standard deviation
SHIFT = 2               # pixels that a picture is moved at most
BRIGHTNESS = 0.15
NORMS_LEARN = 0.67      # of the time


def mean_std(rows):
    return {"mean": rows.mean(0).astype(np.float32), "std": rows.std(0).astype(np.float32)}


class Data:
    """All demonstrations in memory, and LeRobot's statistics of them."""

    def __init__(self, folder):
        files = [np.load(f) for f in sorted(pathlib.Path(folder).glob("*.npz"))]
        join = lambda key: np.concatenate([f[key] for f in files])
        self.images, state, actions = join("images"), join("state"), join("expert")
        self.demo = np.concatenate([f["demo"] + 100_000 * i for i, f in enumerate(files)])
        self.stats = {"observation.state": mean_std(state), "action": mean_std(actions.reshape(-1, actions.shape[-1]))}
        for i, name in enumerate(model.CAMERAS):
            pixels = self.images[::7, i].reshape(-1, 3) / np.float32(255)
            self.stats[f"observation.images.{name}"] = {k: v.reshape(3, 1, 1) for k, v in mean_std(pixels).items()}
        self.state, self.actions = self.normal("observation.state", state), self.normal("action", actions)

    def normal(self, key, rows):
        s = self.stats[key]
        return torch.from_numpy((rows - s["mean"]) / (s["std"] + np.float32(1e-8))).float()

    def split(self, rng):
        demos = np.unique(self.demo)
        held = np.isin(self.demo, rng.choice(demos, int(HELD_OUT * len(demos)), replace=False))
        return np.flatnonzero(~held), np.flatnonzero(held)

    def batch(self, rows, rng, disturbed):
        out = {"observation.state": self.state[rows].clone(), "action": self.actions[rows],
               "action_is_pad": torch.zeros(len(rows), self.actions.shape[1], dtype=torch.bool)}
        if disturbed:
            out["observation.state"] += STATE_NOISE * torch.randn_like(out["observation.state"])
        for i, name in enumerate(model.CAMERAS):
            key = f"observation.images.{name}"
            x = torch.from_numpy(self.images[rows, i]).permute(0, 3, 1, 2).float() / 255
            x = moved(x, rng) if disturbed else x
            s = self.stats[key]
            out[key] = ((x - torch.from_numpy(s["mean"])) / (torch.from_numpy(s["std"]) + 1e-8)).contiguous(
                memory_format=torch.channels_last)
        return out


def moved(x, rng):
    """Pictures shifted by the same few pixels in a batch of eight, each with its own brightness."""
    size, parts = x.shape[-1], []
    for part in x.split(8):
        dx, dy = rng.integers(0, 2 * SHIFT + 1, 2)
        parts.append(F.pad(part, (SHIFT,) * 4, mode="replicate")[:, :, dy:dy + size, dx:dx + size])
    bright = 1 + BRIGHTNESS * (2 * torch.rand(len(x), 1, 1, 1) - 1)
    return (torch.cat(parts) * bright).clamp(0, 1)


def loss(policy, look, batch):
    with torch.autocast("cpu", torch.bfloat16):
        look([batch[f"observation.images.{name}"] for name in model.CAMERAS])
        return policy.forward(batch)


@torch.no_grad()
def held_out(policy, data, rows):
    """L1 in normalised units with a latent of zero, in float32, on rows of demonstrations that are not trained on."""
    policy.eval()
    errors = []
    for part in np.array_split(rows, max(1, len(rows) // 64)):
        batch = data.batch(part, None, False)
        actions = policy.predict_action_chunk({k: v for k, v in batch.items() if k.startswith("observation")})
        errors.append((actions - batch["action"]).abs().mean().item())
    return float(np.mean(errors))


def rate(a, share, step):
    return a.lr * min(1, (step + 1) / 200) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))


def follow(average, policy, step, most):
    """The running mean of the weights, and of what the norms have seen."""
    decay = min(most, (1 + step) / (10 + step))
    with torch.no_grad():
        torch._foreach_lerp_([x for x in average.state_dict().values() if x.is_floating_point()],
                             [x for x in policy.state_dict().values() if x.is_floating_point()], 1 - decay)


def train(a, data, policy, average):
    rng = np.random.default_rng(0)
    chosen, held = data.split(rng)
    held = np.random.default_rng(2).permutation(held)[:512]
    look = model.together(policy)
    optimiser = torch.optim.AdamW(policy.parameters(), a.lr, (0.9, 0.98), weight_decay=0.01, fused=True)
    begin, step, run = time.time(), 0, []
    while (share := (time.time() - begin) / (60 * a.minutes)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = rate(a, share, step)
        policy.train()
        if share > NORMS_LEARN:
            policy.model.backbone.eval()
        total, parts = loss(policy, look, data.batch(rng.choice(chosen, a.batch, replace=False), rng, True))
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        follow(average, policy, step, a.average)
        step += 1
        run.append((parts["l1_loss"], parts["kld_loss"]))
        if step % 200 == 0:
            seconds = time.time() - begin
            print("step %d  %.1f min  %.0f samples/s  l1 %.4f  kl %.5f  held out %.4f" % (
                step, seconds / 60, step * a.batch / seconds, *np.mean(run[-200:], 0), held_out(average, data, held)), flush=True)
            model.save(a.out, average, data.stats)
    return step


def main():
    p = argparse.ArgumentParser()
    p.add_argument("demos")
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--lr", type=float, default=8e-4)
    p.add_argument("--average", type=float, default=0.998, help="decay of the running mean of the weights")
    p.add_argument("--execute", type=int, default=8, help="n_action_steps")
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    data = Data(a.demos)
    size = data.images.shape[2]
    policy = model.build(model.config(size, data.state.shape[1], data.actions.shape[2], data.actions.shape[1], a.execute), True)
    policy.model.backbone.to(memory_format=torch.channels_last)
    average = copy.deepcopy(policy)
    used = sum(q.numel() for n, q in policy.named_parameters() if "vae_encoder" not in n)
    print(f"{len(data.state)} observations, {sum(q.numel() for q in policy.parameters())} parameters, {used} of them at inference; "
          f"action deviation {data.stats['action']['std']}", flush=True)
    begin = time.time()
    steps = train(a, data, policy, average)
    model.save(a.out, average, data.stats)
    print(f"done: {steps} steps of {a.batch} in {(time.time() - begin) / 60:.1f} min")


if __name__ == "__main__":
    main()
