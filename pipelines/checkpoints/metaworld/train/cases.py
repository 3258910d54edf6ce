"""Recorded episodes that replay without a simulator: python cases.py CHECKPOINT OUT [--episodes 1] [--age N --given]

OUT becomes a case of `tectum verify` (family demo, kind episodes) and holds what `tectum run --inputs OUT/<key>.jsonl`
needs. The PyTorch model drives in float64; every tensor comes with the distance of the same code in fp32 and in bf16
(products, keys and values in bf16, the rest in fp32: torch.autocast), which is what bounds are made of.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "tools/demo"))        # the simulator and the loop

import checkpoint
import episode
import tokenizer
from policy import Local, noise
from rollout import sentences
from sim import HZ, TASKS, Sim

MOST_TEXT = 12
MOST_PROMPT = 32
MOST_GIVEN = 8
TAPS = ("prefix_last_hidden", "logits0", "v_t0", "actions", "robot_actions")


class Tapped(Local):
    """The policy, with what lies on the way. `compute`: a context in which the model runs."""

    def __init__(self, folder, dtype, compute=None):
        super().__init__(folder, dtype)
        self.compute = compute or torch.autocast("cpu", enabled=False)

    @torch.no_grad()
    def taps(self, obs):
        state, ids, given = self.model_inputs(obs)
        images = torch.from_numpy(np.stack([obs["observation/image"], obs["observation/wrist_image"]]))[None]
        x = torch.from_numpy(obs["tectum"]["noise"]).to(self.dtype)[None]
        given = None if given is None else torch.from_numpy(given).to(self.dtype)[None]
        with self.compute:
            prompt = torch.tensor([ids])
            h, kv, valid = self.model.prefix(images, prompt, torch.ones_like(prompt, dtype=torch.bool), prompt.shape[1])
            logits = self.model.logits(h[:, -1])
            d = 0 if given is None else given.shape[1]
            t, first = torch.ones(1, self.model.c.horizon, dtype=torch.float64), x.clone()
            if d:
                first[:, :d], t[:, :d] = given, 0
            v = self.model.velocity(first, t, kv, valid)
            actions, text = self.model.infer(images, prompt, x, given, self.steps, MOST_TEXT)
        as_numbers = lambda y: y[0].double().numpy()
        model_actions = as_numbers(actions)
        return {"state_norm": state, "prompt_ids": ids, "text_ids": text, "prefix_last_hidden": as_numbers(h[:, -1]),
                "logits0": as_numbers(logits), "v_t0": as_numbers(v), "actions": model_actions,
                "robot_actions": self.actions.restore(model_actions)}


class Recorder:
    """Keeps every observation of an episode and what the three precisions make of it."""

    def __init__(self, exact, others):
        self.exact, self.others, self.rows = exact, others, []

    def __call__(self, step, obs, reply):
        self.rows.append((step, obs, self.exact.taps(obs), [p.taps(obs) for p in self.others]))


def padded(rows, width):
    return np.array([r + [0] * (width - len(r)) for r in rows], np.int32)


def distance(a, b):
    d = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
    return {"max": float(f"{d.max():.3g}"), "rms": float(f"{np.sqrt((d ** 2).mean()):.3g}")}


def stored_inputs(key, rows, given):
    take = lambda name, dtype: np.array([obs[name] for _, obs, _, _ in rows], dtype)
    out = {f"{key}.image": take("observation/image", np.uint8), f"{key}.wrist_image": take("observation/wrist_image", np.uint8),
           f"{key}.state": take("observation/state", np.float32),
           f"{key}.noise": np.array([obs["tectum"]["noise"] for _, obs, _, _ in rows])}
    if given:
        all_given = np.zeros((len(rows), MOST_GIVEN, 4), np.float32)
        for i, (_, obs, _, _) in enumerate(rows):
            all_given[i, :len(obs["prev_actions"])] = obs["prev_actions"]
        out[f"{key}.prev_actions"] = all_given
    return out


def stored_expected(key, rows, facts):
    """Expected tensors; what their bounds are made of goes to `facts`."""
    out = {f"{key}.prompt_ids": padded([t["prompt_ids"] for _, _, t, _ in rows], MOST_PROMPT),
           f"{key}.text_ids": padded([t["text_ids"] for _, _, t, _ in rows], MOST_TEXT)}
    for name in ("state_norm", *TAPS):
        exact = np.array([t[name] for _, _, t, _ in rows])
        fp32, bf16 = (np.array([o[i][name] for _, _, _, o in rows]) for i in range(2))
        out[f"{key}.{name}"] = exact.astype(np.float32)
        facts[f"{key}.{name}"] = {"shape": list(exact.shape), "rms": float(f"{np.sqrt((exact ** 2).mean()):.3g}"),
                                  "err_fp32": distance(fp32, exact), "err_bf16": distance(bf16, exact)}
    return out


def inference(policy, row):
    step, obs, taps, (_, bf16) = row
    bins = tokenizer.bins(taps["state_norm"]).tolist()
    return {"step": step, "prompt": tokenizer.prompt_text(obs["prompt"], taps["state_norm"]), "state_bins": bins,
            "prompt_ids": taps["prompt_ids"], "text_ids": taps["text_ids"],
            "text": policy.sp.decode([t for t in taps["text_ids"] if t != tokenizer.EOS]),
            "given": len(obs.get("prev_actions", ())), "bf16_text_ids_equal": bf16["text_ids"] == taps["text_ids"]}


def replay_lines(key, rows):
    """Input lines of `tectum run --inputs`."""
    for i, (_, obs, _, _) in enumerate(rows):
        line = {f"observation/{name}": f"@inputs.safetensors#{key}.{name}[{i}]" for name in ("image", "wrist_image", "state")}
        line["prompt"] = obs["prompt"]
        if len(obs.get("prev_actions", ())):
            line["prev_actions"] = np.asarray(obs["prev_actions"], np.float32).tolist()
        yield json.dumps(line)


def header(c, a, policy):
    j = checkpoint.to_json(c, "bfloat16")["geometry"]
    versions = {n: importlib.metadata.version(n) for n in ("metaworld", "mujoco", "torch", "sentencepiece", "numpy")}
    return {
        "family": "demo", "kind": "episodes", "checkpoint": os.path.relpath(a.checkpoint, a.out), "asset_id": "metaworld",
        "what": "closed-loop episodes; every inference: observation -> prompt ids, actions (model and robot), greedy sentence",
        "pipeline": f"pipelines/demo_metaworld{'_aged' if a.given else ''}.lua",
        "tokenizer": os.path.relpath(a.checkpoint / "tokenizer.model", a.out), "versions": versions,
        "config": {"model_type": "pi05", "action_dim": c.action_dim, "action_horizon": c.horizon, "max_token_len": MOST_PROMPT,
                   "slots": ["base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"], **j},
        "weights": {"trained": True, "stored_dtype": "bfloat16"},
        "processing": {"quantile_norm": True, "discrete_state_input": True,
                       "slots": {"base_0_rgb": "image", "left_wrist_0_rgb": "wrist_image", "right_wrist_0_rgb": None},
                       "image_resize": "none: the pictures have the model's size", "text_mask": "bidir", "eos_id": tokenizer.EOS,
                       "max_text_tokens": MOST_TEXT},
        "denoise_steps": policy.steps, "execute": a.execute, "age": a.age, "control_hz": HZ, "cameras_valid": [True, True, False]}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("checkpoint", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--tasks", default=",".join(TASKS))
    p.add_argument("--episodes", type=int, default=1, help="per task")
    p.add_argument("--seed", type=int, default=700_000)
    p.add_argument("--execute", type=int, default=8)
    p.add_argument("--age", type=int, default=0)
    p.add_argument("--given", action="store_true")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    exact = Tapped(a.checkpoint, torch.float64)
    others = Tapped(a.checkpoint, torch.float32), Tapped(a.checkpoint, torch.float32, torch.autocast("cpu", torch.bfloat16))
    case = {**header(exact.model.c, a, exact), "episodes": [], "tensors": {}}
    inputs, expected, rules = {}, {}, episode.Rules(a.execute, a.age, a.given)
    for name in a.tasks.split(","):
        sim = Sim(name)
        for i in range(a.episodes):
            key = name if a.episodes == 1 else f"{name}_{i}"
            recorder = Recorder(exact, others)
            result = episode.run(sim, exact, a.seed + i, rules, None, recorder)
            inputs.update(stored_inputs(key, recorder.rows, a.given))
            expected.update(stored_expected(key, recorder.rows, case["tensors"]))
            case["episodes"].append({"key": key, "task": sim.task.environment, "instruction": sim.task.instruction, "seed": a.seed + i,
                                     "steps": result.steps, "success": result.success, "sentences": sentences(result.said),
                                     "n_inferences": len(recorder.rows), "inferences": [inference(exact, r) for r in recorder.rows]})
            (a.out / f"{key}.jsonl").write_text("\n".join(replay_lines(key, recorder.rows)) + "\n")
            print(f"{key}: {len(recorder.rows)} inferences, {result.steps} steps, success {result.success}", flush=True)
    for name, tensors in (("inputs", inputs), ("expected", expected)):
        save_file(tensors, str(a.out / f"{name}.safetensors"))
        (a.out / f"{name}.safetensors").chmod(0o644)
    (a.out / "case.json").write_text(json.dumps(case, indent=1) + "\n")


if __name__ == "__main__":
    main()
