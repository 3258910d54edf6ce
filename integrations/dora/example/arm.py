"""arm.py - where a robot's driver would be: prints the first action of each chunk, or why there is none.

With ARM_LOG=FILE each output of tectum is a line of JSON there, with all actions.
"""

import json
import os

from dora import Node


def main():
    log = open(os.environ["ARM_LOG"], "w") if "ARM_LOG" in os.environ else None
    node = Node()
    for event in node:
        if event["type"] == "STOP":
            break
        if event["type"] != "INPUT":
            continue
        told, values = event["metadata"], event["value"].to_pylist()
        if log:
            told = {k: v for k, v in told.items() if k != "timestamp"}
            print(json.dumps({"id": event["id"], "values": values, **told}), file=log, flush=True)
        if event["id"] != "actions":
            print(f"{event['id']}: {values[0]}", flush=True)  # an error, or the number of a new episode
        elif not told["rows"]:
            print(f"no actions: {told['source']}", flush=True)
        else:
            first = " ".join(f"{x:7.3f}" for x in values[: told["columns"]])
            print(f"{told['source']:<8} [{first}]  age {told['age_ms']:6.1f} ms", flush=True)


if __name__ == "__main__":
    main()
