"""The planner that ships, in words, against the engine: python table_words.py PROGRAM. Prints what is wrong."""
import argparse
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools/table"))

import words

PLANNER = ROOT / "pipelines/checkpoints/table_planner"
WHOLE = 0.95            # of the answers that are right at least
ROWS = {"whole": (0.8, 1), "0.3": (0.45, 0.8), "0": (0.2, 0.45)}    # the share that is computed; in a prompt about half are memory
wrong = []

goal = [("first press the button", {"said": "ready"}, " press the button", " nothing")] * 2
line = lambda plan, reason="eos": {"text": {"choose": [{"text": plan, "reason": reason}], "tell": [{"text": " nothing", "reason": "eos"}]}}
for lines, expected in (([line(" press the button")] * 2, [[True] * 4]), ([line(" press the button"), line(" done")], [[True, True, False, True]]),
                        ([line(" press the button", "length")] * 2, [[False, True] * 2])):
    twice = [frame for counts in lines for frame in (line(" wait"), counts)]
    if words.hits([goal], twice) != expected:
        wrong.append(f"{lines}: {words.hits([goal], twice)}")

a = argparse.Namespace(program=pathlib.Path(sys.argv[1]).resolve(), set=[])
trials = [states for kind in words.played(1, 7900).values() for states in kind]
with tempfile.TemporaryDirectory() as folder:
    file = words.written(trials, pathlib.Path(folder))
    for way, (least, most) in ROWS.items():
        lines = words.asked(a, PLANNER, way, file)
        hits = [hit for goal in words.hits(trials, lines) for hit in goal]
        if not least < words.computed(lines) < most:
            wrong.append(f"reuse {way}: {words.computed(lines)} of the rows computed")
        if len(lines) != words.TWICE * sum(map(len, trials)) or way == "whole" and sum(hits) < WHOLE * len(hits):
            wrong.append(f"reuse {way}: {sum(hits)} of {len(hits)} answers, {len(lines)} frames")
if wrong:
    print("\n".join(wrong))
sys.exit(bool(wrong))
