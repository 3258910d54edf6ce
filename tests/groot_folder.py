"""groot_folder.py - a folder of GR00T N1.6 as Isaac-GR00T saves it runs by its path alone. usage: groot_folder.py
PROGRAM FOLDER

The network is that of a golden case with rows for another tokenizer. processor_config.json, statistics.json and
embodiment_id.json are written here. What stands around the network is computed a second time, in numpy: the bytes of
pictures, the state, the text, and the robot's actions from the model's. A pipeline whose robot changes nothing is
given those; both must make the same actions.
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys

import numpy

import every_tensor
from groot_areas import seen
from serve_harness import PROGRAM, check, main, test, write_safetensors

W = sys.argv[2]
GOLDEN, TOKENIZER = "tests/golden/groot/n16_tiny/checkpoint", "tests/golden/groot/prepost/eagle_tiny"
TAG, EDGE, HORIZON, ACTIONS, STATE = "my_arm", 70, 5, 8, 21
random = numpy.random.default_rng(16)
count = 0


def numbers(size, rows=None):
    """Statistics of a vector, of each row of a chunk where `rows` is said; its second entry never moved."""
    shape = (rows, size) if rows else (size,)
    middle, width = random.uniform(-1, 1, shape), random.uniform(0.5, 2, shape)
    width[..., 1:2] = 0.0
    made = {"min": middle - width, "max": middle + width, "q01": middle - 0.9 * width, "q99": middle + 0.9 * width,
            "mean": middle + 0.01, "std": 0.4 * width}
    return {name: x.tolist() for name, x in made.items()}


SIZES = {"arm": 3, "hand": 2, "wrist": 2}


def statistics():
    return {TAG: {"state": {key: numbers(size) for key, size in SIZES.items()},
                  "action": {key: numbers(size) for key, size in SIZES.items()},
                  "relative_action": {"arm": numbers(3, HORIZON)}},
            "other_arm": {"state": {}, "action": {}}}


def modality(keys, steps, **more):
    return {"delta_indices": list(range(steps)), "modality_keys": keys, "sin_cos_embedding_keys": None,
            "mean_std_embedding_keys": None, "action_configs": None, **more}


def how(rep, **more):
    return {"rep": rep, "type": "NON_EEF", "format": "DEFAULT", "state_key": None, **more}


def processor():
    own = {
        "modality_configs": {
            TAG: {"video": modality(["front", "wrist"], 1), "state": modality(["hand", "wrist", "arm"], 1),
                  "action": modality(["arm", "wrist", "hand"], HORIZON,
                                     action_configs=[how("RELATIVE"), how("ABSOLUTE"), how("ABSOLUTE")]),
                  "language": modality(["annotation.human.task_description"], 1)},
            "other_arm": {"video": modality(["front"], 1)},
        },
        "image_crop_size": [244, 244], "image_target_size": [256, 256], "use_albumentations": True,
        "random_rotation_angle": None, "color_jitter_params": {"brightness": 0.3}, "shortest_image_edge": EDGE,
        "crop_fraction": 0.95, "model_name": "nvidia/Eagle-Block2A-2B-v2", "model_type": "eagle",
        "formalize_language": True, "max_state_dim": STATE, "max_action_dim": ACTIONS, "max_action_horizon": 40,
        "use_percentiles": False, "clip_outliers": True, "apply_sincos_state_encoding": False,
        "use_relative_action": True,
    }
    return {"processor_class": "Gr00tN1d6Processor", "processor_kwargs": own}


class Folder:
    """A folder whose files `edit` may change: config, processor, statistics, ids."""

    def __init__(self, edit=None):
        global count
        count += 1
        self.path = "%s/groot%d" % (W, count)
        os.mkdir(self.path)
        special = json.load(open(TOKENIZER + "/added_tokens.json"))
        rows = max(special.values()) + 1
        self.config = json.load(open(GOLDEN + "/config.json"))
        self.config["eagle_config"]["image_token_index"] = special["<IMG_CONTEXT>"]
        self.config["eagle_config"]["text_config"]["vocab_size"] = rows
        self.processor, self.statistics, self.ids = processor(), statistics(), {TAG: 5, "other_arm": 2}
        if edit:
            edit(self)
        tensors = every_tensor.read(GOLDEN + "/model.safetensors")
        name = "backbone.model.language_model.model.embed_tokens.weight"
        width = tensors[name][1][1]
        drawn = random.standard_normal((rows, width)).astype("<f4").view("<u4") >> 16
        tensors[name] = ("BF16", [rows, width], drawn.astype("<u2").tobytes())
        tensors.pop("backbone.model.language_model.lm_head.weight", None)
        every_tensor.write(self.path + "/model.safetensors", tensors)
        for file, value in (("config", self.config), ("processor_config", self.processor),
                            ("statistics", self.statistics), ("embodiment_id", self.ids)):
            if value is not None:
                json.dump(value, open("%s/%s.json" % (self.path, file), "w"), indent=2)

    @property
    def own(self):
        return self.processor["processor_kwargs"]


def call(*arguments):
    p = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    return p.returncode, p.stdout, p.stderr


def chunk(pipeline, *options):
    code, out, err = call("run", pipeline, "--root", ".", "--format", "json", "--threads", "1", "--dtype", "f32",
                          "--tokenizer", TOKENIZER, *options)
    check(code == 0, code, err)
    return json.loads(out.splitlines()[0])["actions"]["act"]


# --- what stands around the network, in numpy ----------------------------------------------------

def measured(folder, state):
    own, made = folder.own, []
    m = own["modality_configs"][TAG]["state"]
    names = ("q01", "q99") if own["use_percentiles"] else ("min", "max")
    for key in m["modality_keys"]:
        x, s = numpy.float32(state[key]), folder.statistics[TAG]["state"][key]
        low, high, mean, std = (numpy.array(s[name]) for name in (*names, "mean", "std"))
        if own["apply_sincos_state_encoding"] and key in (m["sin_cos_embedding_keys"] or []):
            y = numpy.concatenate([numpy.sin(x), numpy.cos(x)])
        elif key in (m["mean_std_embedding_keys"] or []):
            y = numpy.where(std != 0, (x - mean) / numpy.where(std == 0, 1, std), x).astype(numpy.float32)
        else:
            wide = ~numpy.isclose(high, low)
            y = numpy.where(wide, (x - low) / numpy.where(wide, high - low, 1), 0).astype(numpy.float32)
            y = numpy.where(wide, 2 * y - numpy.float32(1), 0)
            y = numpy.clip(y, -1, 1) if own["clip_outliers"] else y
        made.append(y)
    y = numpy.concatenate(made)
    return numpy.concatenate([y, numpy.zeros(STATE - len(y))])


def sent(folder, chunk, state):
    own, at, made = folder.own, 0, []
    m = own["modality_configs"][TAG]["action"]
    for i, key in enumerate(m["modality_keys"]):
        c = (m["action_configs"] or [how("ABSOLUTE")] * 9)[i]
        relative = c["rep"] == "RELATIVE" and own["use_relative_action"]
        s = folder.statistics[TAG]["relative_action" if relative else "action"][key]
        low, high = ("q01", "q99") if own["use_percentiles"] and not relative else ("min", "max")
        low, high = numpy.array(s[low]), numpy.array(s[high])
        size = low.shape[-1]
        x = numpy.float32(chunk)[:HORIZON, at:at + size]
        if key in (m["mean_std_embedding_keys"] or []):
            mean, std = numpy.array(s["mean"]), numpy.array(s["std"])
            y = numpy.where(std != 0, x * std + mean, x).astype(numpy.float32)
        else:
            y = (numpy.clip(x, -1, 1) + numpy.float32(1)) / numpy.float32(2) * (high - low) + low
        made.append(y + numpy.float32(state[c["state_key"] or key]) if relative else y)
        at += size
    return numpy.concatenate(made, axis=1)


# --- both ways -----------------------------------------------------------------------------------

STATE_VALUE = {"arm": [0.3, -0.6, 0.2], "hand": [0.5, -1.4], "wrist": [-3.0, 0.1]}
PICTURES = {"front": (80, 120), "wrist": (140, 140)}


def picture(name):
    h, w = PICTURES[name]
    return random.integers(0, 256, (h, w, 3), dtype=numpy.uint8)


def both(folder, text, said, template):
    """The robot's actions by the folder, and what numpy makes of those of a pipeline that changes nothing."""
    raw = {name: picture(name) for name in PICTURES}
    path = folder.path + "/raw.safetensors"
    write_safetensors(path, raw)
    asked = ["--embodiment", TAG, "--input", "annotation.human.task_description=" + text]
    for name in raw:
        asked += ["--input", "video.%s=@%s#%s" % (name, path, name)]
    for key, value in STATE_VALUE.items():
        asked += ["--input", "state.%s=%s" % (key, json.dumps(value))]
    by_folder = chunk(folder.path, *asked)

    own = folder.own
    made = {name: seen(x, EDGE, own["crop_fraction"]) for name, x in raw.items()}
    write_safetensors(folder.path + "/made.safetensors", made)
    chat = ("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n%s"
            "<image 1><img><IMG_CONTEXT></img><image 2><img><IMG_CONTEXT></img><|im_end|>\n" % said)
    plain = folder.path + "/plain.lua"
    with open(plain, "w") as file:
        file.write(PLAIN % (folder.path, TAG, STATE, ACTIONS, EDGE, EDGE, EDGE, EDGE, STATE, ACTIONS))
    asked = ["--input", "state=" + json.dumps([float(x) for x in measured(folder, STATE_VALUE)]),
             "--input", "text=" + chat]
    for name in made:
        asked += ["--input", "video.%s=@%s/made.safetensors#%s" % (name, folder.path, name)]
    return numpy.array(by_folder), sent(folder, chunk(plain, *asked), STATE_VALUE)


PLAIN = """return pipeline {
  name = "plain", schema = 1,
  model = model { arch = "groot_n16", weights = "%s", embodiment = "%s" },
  robot = { name = "plain", resize = "none",
            cameras = { { slot = "video.front", input = "video.front" },
                        { slot = "video.wrist", input = "video.wrist" } },
            state = { inputs = { { input = "state", size = %d } } }, actions = { size = %d, limits = false },
            norm = { mode = "none" }, prompt = { input = "text", template = "bare" } },
  frame = frame { period_ms = 1000, clock = "external" },
  inputs = { image { name = "video.front", h = %d, w = %d }, image { name = "video.wrist", h = %d, w = %d },
             tensor { name = "state", shape = { %d } }, text { name = "text", max_tokens = 400 } },
  resources = { kv.frame { name = "obs", tokens = 450 }, buffer { name = "chunk", shape = { 7, %d } } },
  nodes = { prefill { name = "see", reads = { "video.front", "video.wrist", "state", "text" }, writes = "obs" },
            action { name = "act", kv = "obs", out = "chunk" } },
}
"""


def agree(edit=None, text="Pick up the Cup_2, please!", said="pick up the cup_2 please", template="eagle_words"):
    got, want = both(Folder(edit), text, said, template)
    check(got.shape == want.shape == (HORIZON, 7), got.shape, want.shape)
    away = abs(got - want).max()
    check(away < 1e-5, away, got[0].tolist(), want[0].tolist())
    check(abs(got).max() > 0.01 and numpy.ptp(got, axis=0).max() > 1e-4, got.tolist())


@test
def relative_actions_and_statistics_by_row():
    agree()


@test
def percentiles_sines_means_and_no_clipping():
    def edit(f):
        f.own.update(use_percentiles=True, clip_outliers=False, apply_sincos_state_encoding=True, crop_fraction=0.8)
        f.own["modality_configs"][TAG]["state"].update(sin_cos_embedding_keys=["wrist"],
                                                       mean_std_embedding_keys=["hand"])
        f.own["modality_configs"][TAG]["action"].update(mean_std_embedding_keys=["hand"])
    agree(edit)


@test
def absolute_actions_and_text_as_it_is():
    def edit(f):
        f.own.update(use_relative_action=False, formalize_language=False, crop_fraction=1.0)
        f.own["modality_configs"][TAG]["action"]["action_configs"][0]["type"] = "EEF"
    agree(edit, text="Pick it up.", said="Pick it up.")


@test
def changes_of_another_key():
    def edit(f):
        f.own["modality_configs"][TAG]["action"]["action_configs"][2] = how("RELATIVE", state_key="wrist")
        f.statistics[TAG]["relative_action"]["hand"] = numbers(2)
    agree(edit)


@test
def the_written_pipeline_is_the_folder():
    folder = Folder()
    code, out, err = call("init", folder.path, "--embodiment", TAG)
    check(code == 0, err)
    written = folder.path + "/written.lua"
    open(written, "w").write(out)
    check(chunk(written, "--random-inputs", "1") == chunk(folder.path, "--embodiment", TAG, "--random-inputs", "1"))


@test
def a_folder_without_its_weights_runs_with_made_up_ones():
    folder = Folder()
    for remove in (False, True):
        if remove:
            os.remove(folder.path + "/model.safetensors")
        random = ("--random-weights", "1") if remove else ()
        code, out, err = call("check", folder.path, "--embodiment", TAG, "--tokenizer", TOKENIZER, *random)
        check(code == 0, err)
        plan = out[out.index("device plan"):]
        whole = whole if remove else plan
        check(plan == whole, plan, whole)
    code, out, err = call("run", folder.path, "--embodiment", TAG, "--tokenizer", TOKENIZER, "--random-weights", "1",
                          "--random-inputs", "1")
    check(code == 0, err)


def refused(words, edit):
    folder = Folder(edit)
    code, out, err = call("init", folder.path, "--embodiment", TAG)
    check(code != 0 and words in err, words, err)


@test
def what_would_be_computed_otherwise_is_refused():
    def own(**fields):
        return lambda f: f.own.update(fields)

    def of(what, **fields):
        return lambda f: f.own["modality_configs"][TAG][what].update(fields)

    refused("processor_kwargs.whiten: is no option that is run", own(whiten=True))
    refused("use_mean_std: is not supported", own(use_mean_std=True))
    refused("use_albumentations: must be true", own(use_albumentations=False))
    refused("letter_box_transform: must be true", own(letter_box_transform=False))
    refused("shortest_image_edge: must be 42 to 4096 pixels, is 9", own(shortest_image_edge=9))
    refused("crop_fraction: must be above 0 and at most 1, is 2", own(crop_fraction=2))
    refused("max_state_dim: is 20, but that of config.json is 21", own(max_state_dim=20))
    refused("formalize_language: must be true or false", own(formalize_language="yes"))
    refused("video.delta_indices: must count from 0 on: -1", of("video", delta_indices=[-1, 0]))
    refused("state.delta_indices: observations of 2 steps", of("state", delta_indices=[0, 1]))
    refused("action.delta_indices: has 9 steps, the model's chunk 7", lambda f: (
        f.own.update(use_relative_action=False), of("action", delta_indices=list(range(9)))(f)))
    refused("has numbers for 5 rows of 6", of("action", delta_indices=list(range(6))))
    refused("action_configs[0].type: poses that are relative", lambda f: f.own["modality_configs"][TAG]["action"][
        "action_configs"][0].update(type="EEF", format="XYZ_ROT6D"))
    refused("the state has no 'leg'", lambda f: f.own["modality_configs"][TAG]["action"]["action_configs"][0].update(
        state_key="leg"))
    refused("relative_action.arm.min: must list numbers", lambda f: f.statistics[TAG].pop("relative_action"))
    refused(".state.arm.max: must list 3 numbers", lambda f: f.statistics[TAG]["state"]["arm"].update(max=[1.0]))
    refused("state and actions are normalised", lambda f: f.statistics.pop(TAG))
    refused("embodiment 'my_arm' has no number", lambda f: f.ids.pop(TAG))
    refused("error[E011]: my_arm: must be 0 to", lambda f: f.ids.update({TAG: "five"}))
    refused("error[E011]: my_arm: must be 0 to", lambda f: f.ids.update({TAG: 10 ** 6}))


@test
def lists_that_are_none_and_numbers_that_cannot_be_are_refused():
    def modality(what, **fields):
        return lambda f: f.own["modality_configs"][TAG][what].update(fields)

    def numbers_of(what, **fields):
        return lambda f: f.statistics[TAG][what]["hand"].update(fields)

    def crop(target, cut):
        def edit(f):
            f.own.pop("crop_fraction")
            f.own.update(image_target_size=[target] * 2, image_crop_size=[cut] * 2)
        return edit

    for target, cut in ((0, 0), ("a", "b"), ("6", "3"), (6, None)):
        refused("crop_fraction: must be above 0 and at most 1", crop(target, cut))
    refused("state.modality_keys: must list names", modality("state", modality_keys=["arm", None, "hand"]))
    refused("state.modality_keys: must list names", modality("state", modality_keys=[None, "arm", None, "hand"]))
    refused("video.delta_indices: must list steps", modality("video", delta_indices={"0": 0}))
    for configs in ([how("RELATIVE")], {"arm": how("RELATIVE")}, [how("RELATIVE"), None, how("ABSOLUTE")], 5):
        refused("action.action_configs: must have one for each of 3", modality("action", action_configs=configs))
    refused("action_configs[1]: must be fields", modality("action", action_configs=[how("RELATIVE"), 1, 2]))
    for what in ("state", "action"):
        refused(what + ".hand: min 5.0 must not be above max 4.0", numbers_of(what, min=[5.0, 0.0], max=[4.0, 0.0]))
        refused(what + ".hand: min 1e+308 must not", numbers_of(what, min=[1e308] * 2, max=[1.1e308] * 2))
        refused(what + ".hand.min: must list numbers", numbers_of(what, min=[[]]))

        def deviates(f, what=what):
            numbers_of(what, std=[-1.0, 1.0])(f)
            modality(what, mean_std_embedding_keys=["hand"])(f)
        refused(what + ".hand.std: must not be negative", deviates)


@test
def limits_are_those_of_all_rows():
    def edit(f):
        f.own.update(use_relative_action=False)
        f.statistics[TAG]["action"]["hand"] = {name: [[sign * row, sign] for row in (3.0, 7.0, 1.0, 1.0, 1.0)]
                                               for name, sign in (("min", -1), ("max", 1))}
    folder = Folder(edit)
    code, out, err = call("init", folder.path, "--embodiment", TAG)
    limits = re.search(r"limits = { max = {(.*?)}, min = {(.*?)} }", out)
    check(code == 0 and limits, err)
    most, least = ([float(x) for x in side.split(",")] for side in limits.groups())
    check(most[5:] == [21.0, 3.0] and least[5:] == [-21.0, -3.0], most, least)


@test
def a_mean_of_all_rows_with_deviations_by_row():
    def edit(f):
        own = numbers(2, HORIZON)
        own["std"] = [[0.4, 0.3 * (row % 2)] for row in range(HORIZON)]
        own["mean"] = [0.1, 0.2]
        f.statistics[TAG]["action"]["hand"] = own
        f.own["modality_configs"][TAG]["action"].update(mean_std_embedding_keys=["hand"])
    agree(edit)


@test
def the_tokenizer_is_found_beside_the_folder_or_asked_for_by_name():
    folder = Folder()
    asked = ["run", folder.path, "--embodiment", TAG, "--random-inputs", "1", "--format", "json"]
    code, out, err = call(*asked)
    check(code != 0 and "processor_config.json names that of 'nvidia/Eagle-Block2A-2B-v2'" in err, err)
    shutil.copytree(TOKENIZER, W + "/Eagle-Block2A-2B-v2")
    code, out, err = call(*asked)
    check(code == 0, err)
    code, out, err = call("inspect", folder.path)
    check(code == 0 and "Eagle-Block2A-2B-v2/vocab.json" in out, out)
    shutil.rmtree(W + "/Eagle-Block2A-2B-v2")


@test
def a_folder_of_several_robots_asks_which():
    code, out, err = call("check", Folder().path)
    check(code != 0 and "which robot? say --embodiment TAG" in err and "other_arm" in err, err)
    code, out, err = call("check", Folder().path, "--embodiment", "spider")
    check(code != 0 and "knows no robot 'spider'" in err, err)


if __name__ == "__main__":
    sys.exit(main())
