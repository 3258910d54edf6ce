"""guided.py - chunks that are pulled to the one before them.  usage:
   guided.py folder CHECKPOINT CASE        writes the case's rtc_config into the checkpoint's config.json
   guided.py rows CASE [N]                 the case's earlier chunk in the robot's units, as JSON; of its first N rows
   guided.py chunk LINES [FRAME]           the actions of a frame, as JSON"""
import json
import struct
import sys

from smolvla_pipeline import tensor

STATISTICS = "policy_postprocessor_step_0_unnormalizer_processor.safetensors"


def numbers(path, name):
    shape, data = tensor(path, name)
    n = 1
    for d in shape:
        n *= d
    return shape, struct.unpack(f"<{n}f", data)


def folder(checkpoint, case):
    config = json.load(open(checkpoint + "/config.json"))
    rtc = json.load(open(case + "/case.json"))["rtc"]
    config["rtc_config"] = {key: rtc[key] for key in
                            ("enabled", "prefix_attention_schedule", "max_guidance_weight", "execution_horizon")}
    json.dump(config, open(checkpoint + "/config.json", "w"))


def rows(case, most="1000"):
    checkpoint = case + "/" + json.load(open(case + "/case.json"))["checkpoint"]
    (n, width), values = numbers(case + "/inputs.safetensors", "prev_chunk_left_over")
    mean = numbers(f"{checkpoint}/{STATISTICS}", "action.mean")[1]
    std = numbers(f"{checkpoint}/{STATISTICS}", "action.std")[1]
    chunk = [[values[i * width + j] * std[j] + mean[j] for j in range(width)] for i in range(min(n, int(most)))]
    print(json.dumps(chunk))


def chunk(lines, frame="0"):
    print(json.dumps(json.loads(open(lines).read().splitlines()[int(frame)])["actions"]["act"]))


if __name__ == "__main__":
    {"folder": folder, "rows": rows, "chunk": chunk}[sys.argv[1]](*sys.argv[2:])
