"""row_smolvla.py - SmolVLA of 450 M parameters in bf16: LeRobot in PyTorch, and vla.cpp where its source is given."""
import json
import subprocess

import numpy as np

from row import Row
from turns import nice

VLA, TORCH = [3.0, 5.0], [1.5, None]


def inputs_of(folder, cameras):
    """Arguments of `tectum run` for the inputs that the others get."""
    given = np.load(folder / "inputs.npz")
    out = ["--input", f"observation.state={json.dumps([float(x) for x in given['state']])}", "--input", f"task={task()}"]
    for i in range(cameras):
        out += ["--input", f"observation.images.camera{i + 1}=@{folder}/inputs.safetensors#picture{i}"]
    return out + ["--noise", f"@{folder}/inputs.safetensors#noise"]


def task():
    return "pick up the red cube and put it into the box"


def of_cameras(setup, folder, cameras, rounds):
    """rounds: what products read is rounded to bf16, as PyTorch's bf16 has it."""
    checkpoint = folder / "pretrained_model"
    dtype = "bf16, round" if rounds else "bf16"
    names = {"state": "observation.state", **{f"picture{i}": f"observation.images.camera{i + 1}" for i in range(cameras)}}
    ours = setup.tectum(folder, f"tectum {cameras}{', round' * rounds}", {
        "open": {"path": str(checkpoint), "dtype": "bf16", "set": {"model.round": "bf16"} if rounds else {}},
        "inputs": str(folder / "inputs.npz"), "names": names, "texts": {"task": task()}, "about": {"dtype": dtype}})
    ours.name = "tectum"
    peers = [setup.side(f"PyTorch, {d}", "work_smolvla.py", folder, cameras, setup.threads, d) for d in ("bf16", "f32")]
    goals = {p.name: TORCH for p in peers}
    for d in ("bf16", "f32") if setup.vla else ():
        peers.append(setup.side(f"vla.cpp, {d}", "work_vla.py", setup.work / "native" / "bin" / "libvla.so", folder / "model.gguf",
                                folder / "inputs.npz", cameras, d, env={"VLA_N_THREADS": str(setup.threads)}))
        goals[peers[-1].name] = VLA

    def results():
        command = [setup.program, "run", checkpoint, "--dtype", "bf16", "--threads", str(setup.threads), "--format", "json", "-n", "1"]
        command += ["--set", "model.round=bf16"] if rounds else []
        out = subprocess.run(command + inputs_of(folder, cameras), check=True, capture_output=True, text=True,
                             preexec_fn=lambda: nice(setup.priority)).stdout
        return np.array(json.loads(out.splitlines()[0])["actions"]["act"], np.float64)
    what = f"SmolVLA, 450 M, {cameras} camera{'s' * (cameras > 1)} of 512 x 512{', activations rounded' * rounds}"
    return Row(f"smolvla_{cameras}{'_round' * rounds}", what, ours, peers, goals, frames=1, compare=0.1, results=results)


def rows(setup):
    vla = [setup.vla, setup.llama() / "vendor" / "llama.cpp" / "gguf-py"] if setup.vla else []
    if vla and not (setup.work / "smolvla" / "model.gguf").exists():
        (setup.work / "smolvla" / "made").unlink(missing_ok=True)  # made without vla.cpp's file
    folder = setup.make(setup.work / "smolvla", "smolvla_model.py", setup.root / "tests/golden/smolvla/base/checkpoint/vlm", *vla)
    return [of_cameras(setup, folder, n, rounds) for n in setup.cameras for rounds in (False, True)]
