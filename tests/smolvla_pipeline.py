"""A pipeline for the robot of a golden case of SmolVLA, and its results compared. usage:
   smolvla_pipeline.py CASE PIPELINE CAMERA... >case.lua;  smolvla_pipeline.py --compare CASE lines.jsonl CLIPPED
   where so many values lie beyond the limits of the statistics."""
import json, struct, sys


def tensor(path, name):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + n])[name]
    return entry["shape"], data[8 + n:][slice(*entry["data_offsets"])]


def pipeline(case, parent, cameras):
    said = json.load(open(case + "/case.json"))
    config = json.load(open(case + "/" + said["checkpoint"] + "/config.json"))
    inputs = ", ".join('image { name = "%s", h = 64, w = 64, optional = true }' % c for c in cameras)
    reads = ", ".join('"%s"' % name for name in cameras + ["observation.state", "task"])
    removed = ", ".join('without "observation.images.camera%d"' % i for i in (1, 2, 3))
    text = config["tokenizer_max_length"]
    print(f"""return extend("{parent}", {{
  name = "case",
  inputs = {{ {removed}, {inputs},
    tensor {{ name = "observation.state", shape = {{ {said["state_dim"]} }} }}, text {{ name = "task", max_tokens = {text} }} }},
  resources = {{ kv.frame {{ name = "obs", tokens = {said["prefix_length"] + text} }},
                buffer {{ name = "chunk", shape = {{ {said["horizon"]}, {config["max_action_dim"]} }} }} }},
  nodes = {{ prefill {{ name = "see", reads = {{ {reads} }} }}, action {{ name = "act", steps = {said["num_steps"]} }} }},
}})""")


def compare(case, lines, clipped):
    got = json.loads(open(lines).readline())["actions"]["act"]
    shape, data = tensor(case + "/expected.safetensors", "robot_actions")
    want = struct.unpack("<%df" % (shape[0] * shape[1]), data)
    assert [len(got), len(got[0])] == shape, shape
    away = sorted(abs(a - b) for a, b in zip((x for row in got for x in row), want))
    assert away[-1 - clipped] < 2e-5 * max(1.0, max(map(abs, want))), away


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        compare(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        pipeline(sys.argv[1], sys.argv[2], sys.argv[3:])
