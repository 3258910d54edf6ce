"""__main__.py - the node's program: `path: dora-tectum` in a dataflow, or `python -m dora_tectum`.

Ends with 0 when the dataflow stops or the sender of the trigger has ended, and with 1 and one sentence
on stderr for what is wrong from the start, or when the device has failed.
"""

import os
import sys

import tectum
from dora import Node

from .node import TectumNode
from .settings import Wrong, settings

PAUSE_S = 0.1  # a text that ends while nothing happens leaves then


def main():
    try:
        asked = settings(os.environ)
        robot = tectum.open(asked.pipeline, **asked.options)
    except (Wrong, tectum.Error, TypeError) as error:
        print(f"dora-tectum: {error}", file=sys.stderr)
        return 1
    with robot:  # the model is loaded before dora is told that this node is ready
        events = Node()
        node = TectumNode(robot, events.send_output, asked)
        try:
            going = True
            while going:
                going = node.take(events.next(timeout=PAUSE_S))
        except tectum.Error as error:
            node.error(type(error).__name__, str(error))
            print(f"dora-tectum: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
