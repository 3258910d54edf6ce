"""planner.py - says once what the robot is to do, and prints what the robot says that it is doing."""

import os

import pyarrow as pa
from dora import Node


def main():
    node = Node()
    node.send_output("instruction", pa.array([os.environ.get("INSTRUCTION", "press the button")]))
    for event in node:
        if event["type"] == "STOP":
            break
        if event["type"] == "INPUT":
            print("robot says:", event["value"][0].as_py(), flush=True)


if __name__ == "__main__":
    main()
