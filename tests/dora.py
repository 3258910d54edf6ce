"""dora.py - dataflows with a tectum node, run by dora: actions have the bytes of `tectum run`, what goes wrong leaves as
outputs, and the node ends when the dataflow does.

usage: dora.py PROGRAM FOLDER    with dora, dora-tectum and the node's packages in PATH and PYTHONPATH
"""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
from dora_tectum import arrow

from serve_harness import PROGRAM, SLOW, check, main, test

FOLDER = sys.argv[2]
EPISODES = "pipelines/checkpoints/metaworld/episodes"
OUTPUTS = {}


def flow(name, source, **env):
    """A folder with the files of a dataflow, because dora writes beside them; and its environment."""
    folder = os.path.join(FOLDER, name)
    shutil.copytree(source, folder)
    return folder, {**os.environ, **env}


def dora(file, env):
    p = subprocess.run(["dora", "run", file], cwd=FOLDER, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=120 * SLOW)
    check(p.returncode == 0, p.returncode, p.stdout[-3000:])
    return p.stdout


def lines(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def episode_arrays(path):
    """Pictures and states of the recorded episode, as a file that NumPy reads."""
    with open(EPISODES + "/inputs.safetensors", "rb") as f:
        about = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    arrays = {}
    for name in ("image", "wrist_image", "state"):
        t = about["button." + name]
        kind = np.uint8 if t["dtype"] == "U8" else np.float32
        arrays[name] = np.frombuffer(data[slice(*t["data_offsets"])], kind).reshape(t["shape"])
    np.savez(path, **arrays)


def outputs():
    """Those of flow.yml, by their ids; run once."""
    if not OUTPUTS:
        log, arrays = os.path.join(FOLDER, "robot.log"), os.path.join(FOLDER, "episode.npz")
        episode_arrays(arrays)
        folder, env = flow("steps", "tests/dora", LOG=log, EPISODE_FILE=arrays)
        OUTPUTS["said"] = dora(folder + "/flow.yml", env)
        for line in lines(log):
            OUTPUTS.setdefault(line["id"], []).append(line)
    return OUTPUTS


def actions(line):
    return np.array(line["values"]).reshape(line["rows"], line["columns"])


@test
def actions_have_the_bytes_of_run():
    said = subprocess.run([PROGRAM, "run", "pipelines/demo_metaworld.lua", "--inputs", EPISODES + "/button.jsonl", "-n", "4",
                           "--seed", "7", "--threads", "1", "--format", "json"], stdout=subprocess.PIPE, text=True, check=True)
    chunks = [np.array(json.loads(line)["actions"]["act"]) for line in said.stdout.splitlines()[:4]]
    got = outputs()["actions"][:4]
    check([x["source"] for x in got] == ["fresh"] * 4 and not any(x["missed"] for x in got), got)
    check([x["observation"] for x in got] == [0, 1, 2, 3] and all(x["age_ms"] > 0 for x in got))
    check(chunks[0].tobytes() != chunks[1].tobytes())
    for chunk, x in zip(chunks, got):  # the robot carries out 8 rows between observations
        check(actions(x).tobytes() == chunk[:8].tobytes(), x, chunk)


@test
def what_is_refused_is_an_error_and_a_miss():
    got, errors = outputs()["actions"], outputs()["error"]
    check([x["source"] for x in got[4:9]] == ["held"] * 3 + ["stopped"] * 2, [x["source"] for x in got])
    check(all(x["missed"] for x in got[4:9]) and [x["rows"] for x in got[4:9]] == [8, 8, 8, 0, 0])
    check(got[4]["values"] == got[3]["values"][-4:] * 8, "the last command again")
    words = ("input 'image': 12287 bytes are no picture of 64 x 64", "observation/state: must be 4 float values",
             "input 'state': 2 texts came", "observation/state: must be 4 float values")
    check(len(errors) == 4 and all(word in x["values"][0] for word, x in zip(words, errors)), errors)
    check([x["kind"] for x in errors] == ["Unusable", "ShapeError", "Unusable", "ShapeError"], errors)


@test
def a_reset_ends_the_stop():
    got = outputs()["actions"]
    check([x["values"] for x in outputs()["reset"]] == [[1]], outputs()["reset"])
    check(len(got) == 10 and got[9]["source"] == "fresh" and got[9]["episode"] == 1 and got[8]["episode"] == 0, got[9])


@test
def texts_leave_whole():
    got = outputs()["text"]
    check(got[0]["values"] == ["move above the button"] and got[0]["reason"] == "eos" and got[0]["node"] == "talk", got[0])
    check(got[-1]["episode"] == 1 and got[0]["observation"] == 0, got[-1])


@test
def late_actions_leave_as_substitutes():
    got = outputs()["late"]
    check(got and all(x["missed"] and x["source"] != "fresh" for x in got), [x["source"] for x in got])


@test
def old_pictures_are_not_acted_on():
    got, errors = outputs()["ticked"], outputs()["ticked_error"]
    check(got[-1]["missed"] and got[-1]["source"] != "fresh", got[-1])
    check("ms old; TECTUM_MAX_AGE_MS allows 300" in errors[-1]["values"][0], errors[-1])


def slower(path, timer):
    with open(path) as f:
        text = f.read()
    check("dora/timer/millis/100" in text)
    with open(path, "w") as f:
        f.write(text.replace("dora/timer/millis/100", "dora/timer/" + timer))


@test
def the_example_runs_to_its_end():
    log = os.path.join(FOLDER, "arm.log")
    folder, env = flow("a/b/example", "integrations/dora", ARM_LOG=log)
    os.symlink(os.path.abspath("pipelines"), os.path.join(FOLDER, "a/pipelines"))
    slower(folder + "/dataflow.yml", "millis/400")  # on a busy machine some of what is sent is lost
    said = dora(folder + "/dataflow.yml", env)
    got = [x for x in lines(log) if x["id"] == "actions"]
    check(0 < len(got) <= 8 and all(x["columns"] == 4 for x in got), got)
    check("tectum finished successfully" in said, said[-3000:])


@test
def a_stopped_dataflow_ends_the_node():
    folder, env = flow("c/d/stopped", "integrations/dora")
    os.symlink(os.path.abspath("pipelines"), os.path.join(FOLDER, "c/pipelines"))
    path = folder + "/dataflow.yml"
    slower(path, "secs/3600")  # no observation ever comes
    p = subprocess.Popen(["dora", "run", path], cwd=FOLDER, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    while "starting dataflow" not in said:
        line = p.stdout.readline()
        check(line, said[-3000:])
        said += line
    p.send_signal(signal.SIGINT)
    rest = p.communicate(timeout=60 * SLOW)[0]
    check(p.returncode == 0 and "tectum finished successfully" in rest, p.returncode, rest[-3000:])


@test
def sizes_that_are_none_are_refused():
    pixels = pa.array(np.arange(12, dtype=np.uint8))
    check(arrow.value_of(pixels, {"width": 2, "height": 2}).tolist() == np.arange(12).reshape(2, 2, 3).tolist())
    for width, height in ((-2, -2), (True, 4), (2.0, 2), (0, 0), (2, None), (2**40, 2)):
        try:
            arrow.value_of(pixels, {"width": width, "height": height})
        except arrow.Unusable as error:
            check("are no picture of" in str(error), error)
        else:
            check(False, width, height)


def node(**env):
    return subprocess.run(["dora-tectum"], env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@test
def wrong_settings_end_it_before_it_begins():
    right = {"TECTUM_PIPELINE": "demo_metaworld", "TECTUM_INPUTS": '{"image": "observation/image"}'}
    for name, text, word in (("TECTUM_PIPELINE", "", "TECTUM_PIPELINE"), ("TECTUM_PIPELINE", "no_such", "no_such"),
                             ("TECTUM_INPUTS", "[1]", "TECTUM_INPUTS"), ("TECTUM_INPUTS", "{", "TECTUM_INPUTS"),
                             ("TECTUM_INPUTS", '{"reset": "x"}', "'reset'"), ("TECTUM_OPTIONS", '{"no": 1}', "no"),
                             ("TECTUM_DEADLINE_MS", "soon", "TECTUM_DEADLINE_MS"), ("TECTUM_MAX_AGE_MS", "-1", "TECTUM_MAX_AGE_MS")):
        p = node(**{**right, name: text})
        check(p.returncode == 1 and word in p.stderr and len(p.stderr.splitlines()) == 1, name, text, p.returncode, p.stderr)


sys.exit(main())
