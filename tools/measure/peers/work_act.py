"""work_act.py - a worker: ACT in PyTorch, ONNX Runtime or OpenVINO.

usage: work_act.py torch|onnx|openvino|openvino_bf16 FOLDER CAMERAS THREADS
"""
import sys

from worker import serve, timed  # first: it keeps standard output

import numpy as np


def of_torch(folder, cameras, threads):
    """LeRobot's policy; pictures and ResNet in the order of memory that is faster on CPUs, channels last."""
    import torch

    import act_model
    from lerobot.policies.act.modeling_act import ACTPolicy
    torch.set_num_threads(threads)
    policy = ACTPolicy.from_pretrained(folder).eval()
    policy.model.backbone.to(memory_format=torch.channels_last)
    state, pictures = act_model.tensors(folder, cameras)
    pictures = [p.contiguous(memory_format=torch.channels_last) for p in pictures]
    batch = {"observation.state": state, **{f"observation.images.{i}": p for i, p in enumerate(pictures)}}

    def frame():
        with torch.inference_mode():
            ms, actions = timed(lambda: policy.predict_action_chunk(batch))
        return ms, actions[0].numpy()
    return frame, {"version": torch.__version__, "dtype": "f32"}


def given(folder, cameras):
    values = np.load(f"{folder}/inputs.npz")
    out = {"state": values["state"][None]}
    for i in range(cameras):
        out[f"picture{i}"] = np.ascontiguousarray(values[f"picture{i}"].transpose(2, 0, 1)[None].astype(np.float32) / 255)
    return out


def of_onnx(folder, cameras, threads):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    session = ort.InferenceSession(f"{folder}/act.onnx", options, providers=["CPUExecutionProvider"])
    inputs = given(folder, cameras)

    def frame():
        ms, out = timed(lambda: session.run(None, inputs))
        return ms, out[0][0]
    return frame, {"version": ort.__version__, "dtype": "f32"}


def of_openvino(folder, cameras, threads, precision):
    import openvino as ov
    core = ov.Core()
    compiled = core.compile_model(f"{folder}/act.onnx", "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": "1"})
    request, inputs = compiled.create_infer_request(), given(folder, cameras)

    def frame():
        ms, out = timed(lambda: request.infer(inputs))
        return ms, np.array(out[0][0])
    return frame, {"version": ov.__version__.split("-")[0], "dtype": compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()}


def main():
    kind, folder, cameras, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    make = {"torch": of_torch, "onnx": of_onnx, "openvino": lambda *a: of_openvino(*a, "f32"),
            "openvino_bf16": lambda *a: of_openvino(*a, "bf16")}[kind]
    frame, about = make(folder, cameras, threads)
    serve(frame, about)


if __name__ == "__main__":
    main()
