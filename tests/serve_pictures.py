"""serve_pictures.py - JPEG and PNG pictures in requests to a server, TAP.  python3 tests/serve_pictures.py PROGRAM

A picture that comes as the bytes of a file acts as the pixels do that the golden family `images` gives for that
file; a file that must be refused ends its own connection with a sentence, and no small file costs the others much. Keys that
nothing reads are told once for each connection.
"""

import json
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from serve_client import Array  # noqa: E402
import serve_harness  # noqa: E402
from serve_harness import OBSERVATION, check, main, test, variant  # noqa: E402

GOLDEN = "tests/golden/images/decode/"
CASES = json.load(open(GOLDEN + "case.json"))["files"]


class Server(serve_harness.Server):
    """The demo, with a robot whose pictures may have any size."""

    def __init__(self):
        path = variant("any_size", 'return extend("demo_metaworld.lua", { name = "any_size", robot = "robots/any_size.lua" })')
        robot = open("pipelines/robots/metaworld.lua").read().replace('resize = "none"', 'resize = "openpi_pil"')
        with open(os.path.join(os.path.dirname(path), "robots", "any_size.lua"), "w") as f:
            f.write(robot)
        super().__init__(path, "--late-ok", "--root", ".")


def expected():
    """The pixels of each file that decodes, by its name."""
    data = open(GOLDEN + "expected.safetensors", "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    found = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            found[name] = Array("|u1", t["shape"], data[8 + n + begin:8 + n + end])
    return found


def file_of(case):
    return open(GOLDEN + "files/" + case["file"], "rb").read()


def png(height, width):
    """A black picture; a file of some kilobytes whatever its size."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = zlib.compress(bytes(height * (3 * width + 1)), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def seen(picture, name="observation/image"):
    return {**OBSERVATION, name: picture, "tectum": {"seed": 7}}


def actions(s, *what):
    return s.infer(seen(*what))["actions"].data


def refusal(server, observation):
    s = server.connect()
    s.send(observation)
    return s.failure()[0]


@test
def files_act_as_their_pixels():
    s, pixels = Server().connect(), expected()
    cases = [c for c in CASES if c["expect"] == "ok" and 1 / 64 < c["height"] / c["width"] < 64]  # others leave no pixels
    check(len(cases) > 40, len(cases))
    different = set()
    for c in cases:
        want = actions(s, pixels[c["file"]])
        check(actions(s, file_of(c)) == want, c["file"])
        different.add(want)
    check(len(different) > 20, len(different))


@test
def what_imencode_returns_is_a_file():
    s, c = Server().connect(), CASES[0]
    data = file_of(c)
    want = actions(s, expected()[c["file"]])
    check(want != actions(s, OBSERVATION["observation/image"]))
    for array in (Array("|u1", [len(data)], data), Array("|u1", [len(data), 1], data)):
        check(actions(s, array) == want, array.shape)
    both = {**seen(data), "observation/wrist_image": data}
    raw = {**seen(expected()[c["file"]]), "observation/wrist_image": expected()[c["file"]]}
    check(s.infer(both)["actions"].data == s.infer(raw)["actions"].data)


@test
def broken_files_are_refused_with_their_name():
    server = Server()
    s = server.connect()
    cases = [c for c in CASES if c["expect"] == "reject" and file_of(c)[:3] in (b"\xff\xd8\xff", b"\x89PN")]
    check(len(cases) > 10, len(cases))
    for c in cases:
        text = refusal(server, seen(file_of(c)))
        check("observation/image: " in text and len(text) < 300, c["file"], text)
        check(len(s.infer(seen(file_of(CASES[0])))["actions"].data) > 0)  # the others go on


@test
def a_picture_has_at_most_two_megapixels():
    server = Server()
    s = server.connect()
    for height, width in ((1449, 1448), (8000, 8000)):
        text = refusal(server, seen(png(height, width)))
        check("observation/image: PNG picture, %d x %d: more than 2097152 pixels" % (width, height) in text, text)
    s.infer(seen(png(1080, 1920)))


@test
def files_elsewhere_are_no_pictures():
    server = Server()
    data = file_of(CASES[0])
    s = server.connect()
    check(actions(s, data, "observation/other") == actions(s, OBSERVATION["observation/image"]))  # a key that nobody knows
    text = refusal(server, seen(data, "observation/state"))
    check("observation/state" in text, text)
    text = refusal(server, seen(data, "prompt"))
    check("prompt" in text, text)


@test
def keys_that_nothing_reads_are_told_and_no_camera_is_refused():
    server = serve_harness.Server("pipelines/checkpoints/metaworld_smolvla", "--late-ok")
    picture, state = OBSERVATION["observation/image"], OBSERVATION["observation/state"]
    good = {"observation.state": state, "observation.images.corner": picture, "task": "press the button"}
    s = server.connect()
    s.infer(good)
    for _ in range(2):
        s.infer({**good, "timestamp": 1.0})  # each key is told once for each connection
    s.infer({**good, "timestamp": 1.0, "observation.images.Wrist": picture})
    s.infer(good)
    s = server.connect()
    odd = {"observation.state": state, "observation.images.corner": picture, "observation.images.Wrist": picture, "prompt": "press"}
    for _ in range(2):
        check("actions" in s.infer(odd))
    text = refusal(server, {"observation.state": state, "observation.images.Corner": picture, "task": "press"})
    check("robot lerobot needs a picture in every request, at least one of observation.images.corner, observation.images.wrist; "
          "there is 'observation.images.Corner' (did you mean 'observation.images.corner'?)" in text, text)
    status, _, said = server.end()
    told = [line for line in said.splitlines() if "nothing reads" in line]
    check(len(told) == 4, said)
    check(told[0].endswith("sends what nothing reads: 'timestamp'"), told)
    check(told[1].endswith("sends what nothing reads: 'observation.images.Wrist' (did you mean 'observation.images.wrist'?)"), told)
    check(told[2].endswith("sends what nothing reads: 'observation.images.Wrist' (did you mean 'observation.images.wrist'?), "
                           "'prompt'"), told)
    check("'observation.images.Corner' (did you mean" in told[3], told)


if __name__ == "__main__":
    sys.exit(main())
