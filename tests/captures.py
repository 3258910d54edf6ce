"""captures.py - `explain captures` of every pipeline of the tree: each captured part is told, with nodes of the file
and a line that is there. usage: captures.py PROGRAM FOLDER"""

import glob
import json
import subprocess
import sys

PROGRAM, W = sys.argv[1:3]
count = failed = 0


def check(text, holds, said=""):
    global count, failed
    count += 1
    failed += not holds
    print(f"{'ok' if holds else 'not ok'} {count} - {text}", flush=True)
    if not holds:
        print(f"# {str(said)[:600]}", file=sys.stderr)


def tectum(*words):
    run = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120)
    return run.returncode, run.stdout, run.stderr


def captures(path, *words):
    code, out, err = tectum("explain", "captures", path, "--format", "json", *words)
    if code:
        raise ValueError(err)
    return {c["part"]: c for c in json.loads(out)["captures"]}


def line_of(path, number):
    return open(path, encoding="utf-8").read().splitlines()[number - 1]


def every(path):
    """The parts are those that are compiled; nodes are the graph's, lines hold what is asked for."""
    code, out, err = tectum("graph", "-T", "json", "--compiled", path)
    if code:  # a piece of a pipeline, or one that does not run
        return
    graph, told = json.loads(out), captures(path)
    parts = [p["part"] for p in graph["compiled"]["parts"]]
    names = {n["name"] for n in graph["nodes"]}
    wrong = [c for c in told.values() if not c["nodes"] or not set(c["nodes"]) <= names or c["line"] < 1 or
             c["file"].endswith(".lua") and "{" not in line_of(c["file"], c["line"])]
    commands = {p["part"]: p["commands"] for p in graph["compiled"]["parts"]}
    check(f"{path}: {len(parts)} parts", list(told) == parts and not wrong and
          commands == {name: c["commands"] for name, c in told.items()}, [list(told), parts, wrong])


def words_of():
    path = "pipelines/demo_metaworld.lua"
    told = captures(path)
    check("what always runs together", told["frame"]["nodes"] == ["see", "act"] and
          "runs together" in told["frame"]["why"], told["frame"])
    check("rows between two captured batches", "launches of 4 to 5 requests" in told["decode.b5"]["why"], told["decode.b5"])
    check("the line of capture { }", "capture = capture {" in line_of(path, told["decode.b5"]["line"]), told["decode.b5"])
    less = captures(path, "--set", "capture.batch=[1,8]")
    check("without a point its launches are the next one's", "decode.b5" not in less and
          "launches of 2 to 8 requests" in less["decode.b8"]["why"], less)
    none = captures("pipelines/pi05_libero.lua", "--set", "capture.k=[4]")
    check("steps are those of k", "4 steps at most" in none["decode.b1"]["why"], none)
    draft = captures("pipelines/graphs/g05_speculation.lua")
    check("a draft's captures are its text's", draft["small/decode.b4"]["nodes"] == ["answer"] and
          "a draft's launches of 3 to 4 requests" in draft["small/decode.b4"]["why"] and
          draft["verify.b2"]["nodes"] == ["answer"], draft)
    several = captures("pipelines/pi05_libero_parallel.lua")
    check("the second set", several["decode.b3.beside"]["why"].endswith("once more, to run beside the frame"), several)
    code, out, _ = tectum("explain", "captures", path)
    check("the same as text", code == 0 and out.startswith("demo_metaworld: 6 parts") and
          all(c["why"] in out for c in told.values()) and out.rstrip().endswith("k 2, 3, 4, 6, 12"), out)


def refused():
    for words, code, text in ((["captures"], 2, "a pipeline file is missing"),
                              (["a", "b"], 2, "not the word captures"),
                              (["captures", "nowhere.lua"], 3, "nowhere.lua"),
                              (["captures", "tests/captures.py"], 3, "captures.py"),
                              (["captures", "pipelines/demo_metaworld.lua", "--miss", "1"], 2, "--miss")):
        got, out, err = tectum("explain", *words)
        check(f"explain {' '.join(words)}: exit {code}", (got, out) == (code, "") and text in err and err.count("\n") == 1,
              (got, out, err))


def main():
    for path in sorted(glob.glob("pipelines/*.lua") + glob.glob("pipelines/graphs/*.lua") + glob.glob("tests/pipelines/*.lua")):
        every(path)
    check("most of them were told", count > 45, count)
    words_of()
    refused()
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


main()
