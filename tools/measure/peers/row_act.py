"""row_act.py - ACT of 52 M parameters: LeRobot in PyTorch, ONNX Runtime, OpenVINO."""
from row import Row

GOALS = {"ONNX Runtime": [1.0, 1.3], "OpenVINO": [1.0, 1.3], "PyTorch": None, "OpenVINO, bf16": None}


def of_cameras(setup, cameras):
    folder = setup.make(setup.work / f"act_{cameras}", "act_model.py", cameras)
    names = {f"picture{i}": f"observation.images.{i}" for i in range(cameras)} | {"state": "observation.state"}
    ours = setup.tectum(folder, "tectum", {"open": {"path": str(folder)}, "inputs": str(folder / "inputs.npz"), "names": names,
                                           "about": {"dtype": "f32"}})
    kinds = {"PyTorch": "torch", "ONNX Runtime": "onnx", "OpenVINO": "openvino", "OpenVINO, bf16": "openvino_bf16"}
    peers = [setup.side(name, "work_act.py", kind, folder, cameras, setup.threads) for name, kind in kinds.items()]
    return Row(f"act_{cameras}", f"ACT, 52 M, {cameras} camera{'s' * (cameras > 1)} of 480 x 640", ours, peers, GOALS, frames=4,
               compare=0.05, more=rate)


def rate(_, found):
    """How many frames fit into the time between two at 30 Hz."""
    return {"of_30_hz": round(1e3 / 30 / found["ours"]["p50_ms"], 3)}


def rows(setup):
    return [of_cameras(setup, n) for n in setup.cameras if n <= 2]
