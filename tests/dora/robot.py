"""robot.py - the robot of flow.yml: sends an observation, waits for its actions, sends the next. Each output that it is
given is a line of JSON in the file LOG."""

import json
import os

import numpy as np
import pyarrow as pa
from dora import Node

INPUTS = np.load(os.environ["EPISODE_FILE"])
node, log, came = Node(), open(os.environ["LOG"], "w"), []


def until(wanted, also_before=False):
    """Until an output that is wanted has come, or is there; every one is kept."""
    if also_before and any(map(wanted, came)):
        return
    for event in node:
        if event["type"] == "INPUT":
            came.append({"id": event["id"], "values": event["value"].to_pylist(), **event["metadata"]})
            del came[-1]["timestamp"]
            print(json.dumps(came[-1]), file=log, flush=True)
            if wanted(came[-1]):
                return
    raise SystemExit("the dataflow ended before its time")


def picture(name, pixels, encoding="rgb8", lacks=0):
    height, width, _ = pixels.shape
    sent = pixels if encoding == "rgb8" else np.ascontiguousarray(pixels[:, :, ::-1])
    data = pa.array(sent.reshape(-1)[: sent.size - lacks])
    node.send_output(name, data, {"width": width, "height": height, "encoding": encoding})


def observe(i, encoding="rgb8", lacks=0, state=None):
    picture("image", INPUTS["image"][i], encoding, lacks)
    picture("wrist_image", INPUTS["wrist_image"][i])
    node.send_output("state", pa.array(INPUTS["state"][i] if state is None else state))
    until(lambda got: got["id"] == "actions")


node.send_output("instruction", pa.array(["press the button"]))
for i in range(3):
    observe(i)
observe(3, "bgr8")
observe(4, lacks=1)
for wrong in (np.zeros(3, np.float32), pa.array(["no", "state"]), np.zeros(4, np.float64)[:2]):
    observe(4, state=wrong)
observe(4)
node.send_output("again", pa.array([True]))
until(lambda got: got["id"] == "reset")
observe(5)
until(lambda got: got["id"] == "text" and got["episode"] == 1, also_before=True)
until(lambda got: got["id"] == "late", also_before=True)
# What the third one has is old by and by.
until(lambda got: got["id"] == "ticked_error" and "ms old" in got["values"][0])
until(lambda got: got["id"] == "ticked")
