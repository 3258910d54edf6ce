"""Behaviour cloning of the small SmolVLA: python learn.py DEMOS OUT [--steps 420] [--until 240]

As LeRobot's SmolVLA is trained by default: the language model and its tower, here those of the other robot (eyes.py), stay as
they are; the expert and the state's projection learn. So keys and values of pictures and task are computed once (OUT/seen.pt), of
--copies of each observation: as it is, and with pictures that are moved and of another brightness. Flow matching on the expert's
chunks: x = t noise + (1 - t) actions, v = noise - actions, t of Beta(1.5, 1). Every step draws from its own number, so a run that
stops at --until and begins again gives the weights of one that did not stop.
"""
import argparse
import copy
import math
import pathlib
import sys
import time

import numpy as np
import torch

import eyes
import folder
import vocabulary
from smolvla import Config, SmolVLA

OTHER = pathlib.Path(__file__).resolve().parents[2] / "metaworld"
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "metaworld/train"))

from train import HELD_OUT, STATE_NOISE, augment        # of the other robot's training


class Data:
    """All demonstrations in memory."""

    def __init__(self, demos):
        files = [np.load(f) for f in sorted(demos.glob("**/*.npz"))]
        join = lambda key: np.concatenate([f[key] for f in files])
        instructions = [str(f["prompt"]) for f in files]
        state, actions = join("state"), join("expert")
        self.stats = {folder.STATE: folder.statistics(state),
                      folder.ACTION: folder.statistics(actions.reshape(-1, actions.shape[-1]))}
        self.state, self.actions = folder.normal(self.stats, folder.STATE, state), folder.normal(self.stats, folder.ACTION, actions)
        self.images = torch.from_numpy(join("images"))
        self.tokenizer = vocabulary.build([text + "\n" for text in sorted(set(instructions))])
        prompts = torch.tensor([vocabulary.ids(self.tokenizer, text) for text in instructions])      # of one length
        self.prompt = prompts[np.concatenate([[i] * len(f["state"]) for i, f in enumerate(files)])]
        demo = np.concatenate([f["demo"] + 100_000 * i for i, f in enumerate(files)])
        demos = np.random.default_rng(0).permutation(np.unique(demo))
        held = np.isin(demo, demos[:int(HELD_OUT * len(demos))])
        self.chosen, self.held = np.flatnonzero(~held), np.random.default_rng(2).permutation(np.flatnonzero(held))[:384]

    def batch(self, rows, rng, seen, disturbed):
        """Keys and values of one copy of each row, the state, the chunk."""
        state, copy_of = self.state[rows], np.zeros(len(rows), int)
        if disturbed:
            state, copy_of = state + rng.normal(0, STATE_NOISE, state.shape), rng.integers(0, len(seen), len(rows))
        as_tensor = lambda x: torch.from_numpy(np.float32(x))
        kv = seen[torch.from_numpy(copy_of), torch.from_numpy(rows)].float().unbind(1)
        return list(zip(kv[::2], kv[1::2])), as_tensor(state), as_tensor(self.actions[rows])


@torch.no_grad()
def look(model, data, path, count):
    """Keys and values of pictures and task: f16 [copies, observations, 2 layers, kv_heads, N, head_dim]; read from `path` if there."""
    if path.exists():
        return torch.load(path, mmap=True)
    rng, copies = np.random.default_rng(3), []
    for i in range(count):
        rows = []
        for part in np.array_split(np.arange(len(data.images)), max(1, len(data.images) // 64)):
            images = augment(data.images[part], rng) if i else data.images[part]
            rows.append(torch.stack([x for kv in model.seen(images, data.prompt[part]) for x in kv], 1).half())
        copies.append(torch.cat(rows))
    torch.save(torch.stack(copies), path)
    return torch.stack(copies)


def loss(model, batch, repeats):
    """`repeats` samples of noise share one prefix."""
    seen, state, actions = batch
    many = lambda z: z.repeat_interleave(repeats, 0)
    read = [(many(k), many(v)) for k, v in model.with_state(seen, state)]
    actions = many(actions)
    t = torch.distributions.Beta(1.5, 1.0).sample((len(actions),)) * 0.999 + 0.001
    noise = torch.randn_like(actions)
    share = t[:, None, None]
    v = model.velocity(share * noise + (1 - share) * actions, t, read)
    return (v - (noise - actions)).square().mean()


@torch.no_grad()
def held_out(model, data, seen):
    torch.manual_seed(1)
    return loss(model, data.batch(data.held, None, seen, False), 2).item()


def train(a, data, seen, parts):
    model, average, optimiser = parts["model"], parts["average"], parts["optimiser"]
    begin, first, run = time.process_time(), parts["step"], []
    for step in range(first, min(a.steps, a.until or a.steps)):
        rng = np.random.default_rng([a.seed, step])
        torch.manual_seed(1_000_000 * a.seed + step)
        for group in optimiser.param_groups:
            group["lr"] = a.lr * min(1, (step + 1) / 150) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / a.steps)))
        wrong = loss(model, data.batch(rng.choice(data.chosen, a.batch, replace=False), rng, seen, True), a.repeats)
        optimiser.zero_grad(set_to_none=True)
        wrong.backward()
        torch.nn.utils.clip_grad_norm_(learning(model), 1.0)
        optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(learning(average), learning(model), 1 - min(a.average, (1 + step) / (10 + step)))
        parts["step"] = step + 1
        run.append(wrong.item())
        if parts["step"] % a.report == 0:
            parts["seconds"] += time.process_time() - begin
            begin = time.process_time()
            print("step %d  %.2f processor minutes  flow %.4f  held out %.4f" % (
                step + 1, parts["seconds"] / 60, np.mean(run[-a.report:]), held_out(average, data, seen)), flush=True)
            keep(a, data, parts)


def learning(model):
    """Parameters that learn."""
    return [q for name, q in model.named_parameters() if ".vlm." not in name]


def keep(a, data, parts):
    """Where the run stands, and the averaged weights as a folder."""
    saved = {k: v.state_dict() if hasattr(v, "state_dict") else v for k, v in parts.items()}
    torch.save(saved, a.out / "state.new")
    (a.out / "state.new").replace(a.out / "state.pt")
    folder.save(a.out, parts["average"], data.stats, data.tokenizer, a.vlm or str(a.out / "vlm"), a.execute, torch.bfloat16)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("demos", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--steps", type=int, default=420, help="of the whole schedule")
    p.add_argument("--until", type=int, help="stop before this step; the next call goes on")
    p.add_argument("--copies", type=int, default=1)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=1.5e-3)
    p.add_argument("--average", type=float, default=0.99, help="decay of the averaged weights, which are what is saved")
    p.add_argument("--repeats", type=int, default=2, help="noise samples that share one prefix")
    p.add_argument("--execute", type=int, default=8, help="n_action_steps")
    p.add_argument("--vlm", help="vlm_model_name; OUT/vlm")
    p.add_argument("--report", type=int, default=60, help="steps between two lines, after each of which a run can go on")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    a.out.mkdir(parents=True, exist_ok=True)
    data = Data(a.demos)
    names = 1 + max([*data.tokenizer["model"]["vocab"].values(), *(t["id"] for t in data.tokenizer["added_tokens"])])
    model = SmolVLA(Config(vocab=names, horizon=data.actions.shape[1]))
    eyes.begin(model, OTHER, data.tokenizer)
    with torch.no_grad():
        for name, q in model.named_parameters():
            if ".vlm." in name:                             # as it ships
                q.copy_(q.bfloat16())
    seen = look(model, data, a.out / "seen.pt", a.copies)
    model.requires_grad_(False)
    for q in learning(model):
        q.requires_grad_(True)
    parts = {"model": model, "average": copy.deepcopy(model), "step": 0, "seconds": 0.0,
             "optimiser": torch.optim.AdamW(learning(model), a.lr, (0.9, 0.98), weight_decay=0.02, fused=True)}
    if (a.out / "state.pt").exists():
        for key, value in torch.load(a.out / "state.pt").items():
            if hasattr(parts[key], "load_state_dict"):
                parts[key].load_state_dict(value)
            else:
                parts[key] = value
    print(f"{len(data.state)} observations, {sum(q.numel() for q in model.parameters())} parameters, from step {parts['step']}; "
          f"action deviation {data.stats[folder.ACTION]['std']}", flush=True)
    train(a, data, seen, parts)


if __name__ == "__main__":
    sys.exit(main())
