"""unread_text.py - a text that no prompt can be made of stops no robot, and the engineer is told: by run, by serve and by
/metrics, TAP. The tokenizer has a piece more than the bundled model has tokens, and the model says it.

usage: python3 tests/unread_text.py PROGRAM"""

import json
import os
import struct
import subprocess
import urllib.request

from serve_harness import BOX, OBSERVATION, PROGRAM, SLOW, Server, check, main, test

PIPELINE = "tests/pipelines/said_demo.lua"
TOLD = "no prompt is made of the text of 'narration', the one before stays"
TOKENIZER = os.path.join(BOX, "more.model")


def make_tokenizer(piece="to\u2581the".encode()):
    """A message of sentencepiece's protobuf more: the piece, its score, its type (the user's own)."""
    body = b"\x0a" + bytes([len(piece)]) + piece + b"\x15" + struct.pack("<f", 0.0) + b"\x18\x04"
    with open("pipelines/checkpoints/metaworld/tokenizer.model", "rb") as old, open(TOKENIZER, "wb") as new:
        new.write(old.read() + b"\x0a" + bytes([len(body)]) + body)


@test
def run_goes_on_and_says_it_once():
    done = subprocess.run([PROGRAM, "run", PIPELINE, "--tokenizer", TOKENIZER, "--random-inputs", "1", "-n", "4", "--threads",
                           "1", "--format", "json"], capture_output=True, text=True, timeout=120 * SLOW)
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    check(done.returncode == 0 and len(frames) == 4, done.stderr)
    check(all("to the" in f["text"]["talk"][0]["text"] for f in frames), frames)
    check([r["request"] for f in frames for r in f["read"]] == [None] * 4, [f["read"] for f in frames])
    told = [line for line in done.stderr.splitlines() if TOLD in line]
    check(len(told) == 1 and "frame 0: " in told[0] and "demo_metaworld.lua:" in told[0], done.stderr)


@test
def serve_answers_and_counts():
    s = Server(PIPELINE, "--tokenizer", TOKENIZER, "--late-ok")
    c = s.connect()
    for _ in range(3):
        reply = c.infer(dict(OBSERVATION, prompt="open the drawer"))
        check("actions" in reply, reply)
    shown = urllib.request.urlopen("http://127.0.0.1:%d/metrics" % s.port, timeout=20 * SLOW).read().decode()
    count = [int(line.split()[1]) for line in shown.splitlines() if line.startswith("tectum_unread_texts_total ")]
    status, out, err = s.end()
    check(status == 0 and len(count) == 1, status, err)
    check(count[0] == 3 and err.count(TOLD) == 1, count, err)


make_tokenizer()
main()
