"""guided.py - chunks that are pulled to the one before them.  usage:
   guided.py folder CHECKPOINT CASE        writes the case's rtc_config into the checkpoint's config.json
   guided.py rows CASE [N]                 the case's earlier chunk in the robot's units, as JSON; of its first N rows
   guided.py chunk LINES [FRAME]           the actions of a frame, as JSON
   guided.py ask PORT CASE                 asks a server with and without an earlier chunk"""
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


def ask(port, case):
    from serve_client import Array, Socket, pack, unpack
    said, path = json.load(open(case + "/case.json")), case + "/inputs.safetensors"
    seen = {"task": said["task"], "observation.state": Array.floats(numbers(path, "observation.state")[1])}
    for name in said["cameras"]:
        shape, data = tensor(path, "image." + name)
        seen[name] = Array("|u1", shape, data)
    left = Array("<f8", [4, 6], struct.pack("<24d", *([0.5] * 24)))
    socket, chunks = Socket(int(port)), []
    socket.reply()
    for more in ({}, {"prev_chunk_left_over": left, "inference_delay": Array.floats([2.0])}, {}):
        socket.frame(2, pack(seen | more))
        reply = socket.reply()["actions"]
        code = {"<f8": "d", "<f4": "f"}[reply.dtype]
        values = struct.unpack(f"<{len(reply.data) // struct.calcsize(code)}{code}", reply.data)
        chunks.append([values[i:i + 6] for i in range(0, len(values), 6)])

    def away(rows):
        return sum(abs(x - 0.5) for row in rows[:2] for x in row)
    assert away(chunks[1]) < 0.5 * min(away(chunks[0]), away(chunks[2])), [away(c) for c in chunks]


if __name__ == "__main__":
    {"folder": folder, "rows": rows, "chunk": chunk, "ask": ask}[sys.argv[1]](*sys.argv[2:])
