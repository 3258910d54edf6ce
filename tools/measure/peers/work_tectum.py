"""work_tectum.py - a worker: tectum by its Python package, an observation after the other.

usage: work_tectum.py SPEC.json; its members: open (arguments of tectum.open), inputs (FILE.npz, names of arrays as inputs are
named there), names (of inputs, by array), texts. A frame's time is that from the submission of the observation to the moment when the actions
have left, pictures prepared and actions in the robot's units included.
"""
import json
import pathlib
import sys

from worker import serve  # first: it keeps standard output

import numpy as np
import tectum


def main():
    spec = json.loads(pathlib.Path(sys.argv[1]).read_text())
    robot = tectum.open(**spec["open"])
    names = spec.get("names", {})
    arrays = np.load(spec["inputs"]) if names else {}
    observation = {name: np.ascontiguousarray(arrays[k]) for k, name in names.items()} | spec.get("texts", {})

    def frame():
        chunk = robot.infer(observation).chunks[robot.nodes[0]]
        return 1e-6 * chunk.age_ns, chunk.actions
    serve(frame, {"version": tectum.__version__, **spec["about"]})


if __name__ == "__main__":
    main()
