"""groot_n17_folder.py - a folder of GR00T N1.7 as LeRobot 0.6 saves it runs by its path alone. usage:
groot_n17_folder.py PROGRAM FOLDER

The network is that of a case of tests/fixtures with patches of 16 pixels and rows for another tokenizer; config.json and
the two processors are written here. What stands around the network is computed a second time, in numpy, by the formulas
of lerobot 0.6.1's policies/groot/processor_groot.py (tests/fixtures/groot/README.md): the bytes of pictures, the state,
the text, and the robot's actions from the model's. A pipeline whose robot changes nothing is given those; both must make
the same actions. `stated` are the same functions, held to that code by tests/fixtures/make_groot_n17_folder.py.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import numpy

import every_tensor
import groot_n17_stated as stated
from serve_client import Array
from serve_harness import PROGRAM, Server, check, main, test, write_safetensors

W = sys.argv[2]
CASE, TOKENIZER = "tests/fixtures/groot/n17_tiny/checkpoint", "tests/golden/groot/prepost/eagle_tiny"
HORIZON, ACTIONS, STATE = 7, 8, 21
PACKS, SEES = "groot_n1_7_pack_inputs_v1", "groot_n1_7_vlm_encode_v1"
VECTOR, GROUPS = "groot_action_unpack_unnormalize_v2", "groot_n1_7_action_decode_v1"
random = numpy.random.default_rng(17)
count = 0


def numbers(size, rows=None):
    """Statistics of a vector, of each row of a chunk where `rows` is said; its second entry never moved."""
    shape = (rows, size) if rows else (size,)
    middle, width = random.uniform(-1, 1, shape), random.uniform(0.5, 2, shape)
    width[..., 1:2] = 0.0
    made = {"min": middle - width, "max": middle + width, "q01": middle - 0.9 * width, "q99": middle + 0.9 * width,
            "mean": middle, "std": 0.4 * width}
    return {name: x.tolist() for name, x in made.items()}


def step(name, config, state=None):
    made = {"registry_name": name, "config": config}
    return {**made, "state_file": state} if state else made


DEVICE = {"device": "cpu", "float_dtype": None}


class Folder:
    """A folder whose parts `edit` may change: config, pack, sees, unpack (the steps' configurations), stats, base, vlm."""

    def __init__(self, edit=None, groups=False):
        global count
        count += 1
        self.path, self.name = "%s/folder%d" % (W, count), "base%d" % count
        os.mkdir(self.path)
        special = json.load(open(TOKENIZER + "/added_tokens.json"))
        self.rows = max(special.values()) + 1
        self.base, self.vlm = json.load(open(CASE + "/config.json")), json.load(open(CASE + "/vlm/config.json"))
        self.base["model_name"] = "vlm%d" % count
        self.vlm["vision_config"]["patch_size"] = 16
        self.vlm["image_token_id"] = special["<|image_pad|>"]
        self.vlm["text_config"]["vocab_size"] = self.rows
        self.stats = {"observation.state": numbers(7), "action": numbers(5)}
        self.config = {
            "type": "groot", "n_obs_steps": 1, "chunk_size": 40, "n_action_steps": 40, "max_state_dim": STATE,
            "max_action_dim": ACTIONS, "base_model_path": "nvidia/" + self.name, "embodiment_tag": "new_embodiment",
            "action_decode_transform": None, "use_relative_actions": False, "model_params_fp32": True,
            "num_inference_timesteps": 3,
            "input_features": {"observation.images.wrist": {"type": "VISUAL", "shape": [3, 140, 140]},
                               "observation.images.front": {"type": "VISUAL", "shape": [3, 80, 120]},
                               "observation.state": {"type": "STATE", "shape": [7]}},
            "output_features": {"action": {"type": "ACTION", "shape": [5]}}}
        self.pack = {"state_horizon": 1, "action_horizon": 40, "valid_action_horizon": 40, "video_horizon": None,
                     "max_state_dim": STATE, "max_action_dim": ACTIONS, "language_key": "task",
                     "formalize_language": True, "embodiment_tag": "new_embodiment",
                     "embodiment_mapping": {"new_embodiment": 10, "libero_sim": 2}, "normalize_min_max": True,
                     "state_dropout_prob": 0.0, "clip_outliers": True, "use_percentiles": False,
                     "video_modality_keys": None, "raw_stats": None, "modality_config": None}
        self.sees = {"model_name": "nvidia/Cosmos-Reason2-2B", "image_crop_size": [230, 230],
                     "image_target_size": [256, 256], "shortest_image_edge": None, "crop_fraction": None,
                     "use_albumentations": False, "letter_box_transform": False, "device": "cuda"}
        self.unpacks, self.unpack = VECTOR, {
            "env_action_dim": 5, "normalize_min_max": True, "clip_normalized_action": True,
            "libero_gripper_action": False, "libero_gripper_binarize": True}
        self.before, self.after = [], []  # further steps
        if groups:
            self.make_groups()
        if edit:
            edit(self)
        self.write()

    def make_groups(self):
        """Groups as raw checkpoints and LeRobot's relative training have them."""
        keys, sizes = ["hand", "arm", "gripper"], {"hand": 2, "arm": 4, "gripper": 1}
        raw = {"state": {key: numbers(n) for key, n in sizes.items()},
               "action": {key: numbers(n) for key, n in sizes.items()}, "relative_action": {"arm": numbers(4, 5)}}
        modality = {"state": {"modality_keys": keys}, "video": {"modality_keys": ["wrist", "front"]},
                    "action": {"modality_keys": ["arm", "hand", "gripper"], "delta_indices": list(range(5)),
                               "action_configs": [{"rep": rep, "type": "NON_EEF", "format": "DEFAULT",
                                                   "state_key": None} for rep in ("relative", "ABSOLUTE", "ABSOLUTE")]}}
        self.unpacks, self.unpack = GROUPS, {
            "env_action_dim": 7, "raw_stats": raw, "modality_config": modality, "use_percentiles": True,
            "use_relative_action": True, "action_decode_transform": None}
        self.pack.update(raw_stats=raw, modality_config=modality, video_modality_keys=["wrist", "front"])
        self.config["output_features"]["action"]["shape"] = [7]
        self.config["use_relative_actions"] = True
        both = {name: sum((raw["state"][key][of] for key in keys), []) for name, of in (("min", "q01"), ("max", "q99"))}
        self.stats = {"observation.state": both}

    def write(self):
        for name, value in ((self.name, self.base), (self.base.get("model_name") or "", self.vlm)):
            if value is not None and name:
                os.makedirs("%s/%s" % (W, name), exist_ok=True)
                json.dump(value, open("%s/%s/config.json" % (W, name), "w"))
        tensors = every_tensor.read(CASE + "/model.safetensors")

        def drawn(name, shape, scale):
            x = (scale * random.standard_normal(shape)).astype("<f4").view("<u4") >> 16
            tensors[name] = ("BF16", list(shape), x.astype("<u2").tobytes())
        # LeRobot ties both and stores one of the two names.
        tensors.pop("backbone.model.model.language_model.embed_tokens.weight", None)
        drawn("backbone.model.lm_head.weight", (self.rows, 32), 0.5)
        drawn("backbone.model.model.visual.patch_embed.proj.weight", (24, 3, 2, 16, 16), 1536 ** -0.5)
        for name in ("W", "b"):  # or most of a chunk would lie outside of -1 .. 1
            name = "action_head.action_decoder.layer2." + name
            kind, shape, data = tensors[name]
            small = (numpy.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4") / 8
            tensors[name] = (kind, shape, (small.view("<u4") >> 16).astype("<u2").tobytes())
        every_tensor.write(self.path + "/model.safetensors", {"_groot_model." + k: v for k, v in tensors.items()})
        every_tensor.write("%s/%s/model.safetensors" % (W, self.name), tensors)  # for the pipeline that changes nothing
        kept = {}
        for feature, own in self.stats.items():
            # data sets have float64 numbers
            kept.update({"%s.%s" % (feature, k): ("F64", [len(v)], numpy.float64(v).tobytes())
                         for k, v in own.items() if k in ("min", "max")})
        if kept:
            every_tensor.write(self.path + "/stats.safetensors", kept)
        state = "stats.safetensors" if kept else None
        steps = [step("rename_observations_processor", {"rename_map": {}}), step("to_batch_processor", {}), *self.before,
                 step(PACKS, self.pack, state)]
        if self.sees is not None:
            steps.append(step(SEES, self.sees))
        files = {"config": self.config,
                 "policy_preprocessor": {"name": "policy_preprocessor",
                                         "steps": [*steps, step("device_processor", DEVICE)]},
                 "policy_postprocessor": {"name": "policy_postprocessor", "steps": [
                     step(self.unpacks, self.unpack, state if self.unpacks == VECTOR else None), *self.after,
                     step("device_processor", DEVICE)]}}
        for name, value in files.items():
            json.dump(value, open("%s/%s.json" % (self.path, name), "w"), indent=2)


def call(*arguments):
    p = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    return p.returncode, p.stdout, p.stderr


def chunk(pipeline, *options):
    code, out, err = call("run", pipeline, "--root", ".", "--format", "json", "--threads", "1", "--dtype", "f32",
                          "--tokenizer", TOKENIZER, *options)
    check(code == 0, code, err)
    return json.loads(out.splitlines()[0])["actions"]["act"]


STATE_VALUE = [0.5, -1.4, 0.3, -0.6, 0.2, 0.1, 3.0]
PICTURES = {"front": (80, 120), "wrist": (140, 140)}
PLAIN = """return pipeline {
  name = "plain", schema = 1,
  model = model { arch = "groot_n17", weights = "%s", embodiment = "%s" },
  robot = { name = "plain", resize = "none",
            cameras = { { slot = "observation.images.%s", input = "first" },
                        { slot = "observation.images.%s", input = "second" } },
            state = { inputs = { { input = "state", size = %d } } }, actions = { size = %d, limits = false },
            norm = { mode = "none" }, prompt = { input = "text", template = "bare" } },
  frame = frame { period_ms = 1000, clock = "external" },
  inputs = { image { name = "first", h = 256, w = 256 }, image { name = "second", h = 256, w = 256 },
             tensor { name = "state", shape = { %d } }, text { name = "text", max_tokens = 400 } },
  resources = { kv.frame { name = "obs", tokens = 600 }, buffer { name = "chunk", shape = { %d, %d } } },
  nodes = { prefill { name = "see", reads = { "first", "second", "state", "text" }, writes = "obs" },
            action { name = "act", kv = "obs", steps = 3, out = "chunk" } },
}
"""


def both(folder, text, said, names):
    """The robot's actions by the folder, and what numpy makes of those of a pipeline that changes nothing."""
    raw = {name: random.integers(0, 256, (*PICTURES[name], 3), dtype=numpy.uint8) for name in PICTURES}
    path = folder.path + "/raw.safetensors"
    write_safetensors(path, raw)
    asked = ["--input", "observation.state=" + json.dumps(STATE_VALUE)]
    if text is not None:
        asked += ["--input", "task=" + text]
    for name in raw:
        asked += ["--input", "observation.images.%s=@%s#%s" % (name, path, name)]
    by_folder = chunk(folder.path, *asked)

    made = {name: stated.picture(raw[name], folder.sees) for name in names}
    write_safetensors(folder.path + "/made.safetensors", made)
    chat = ("<|im_start|>user\n" + 2 * "<|vision_start|><|image_pad|><|vision_end|>" + said + "<|im_end|>\n")
    plain = folder.path + "/plain.lua"
    with open(plain, "w") as file:
        file.write(PLAIN % (W + "/" + folder.name, folder.config["embodiment_tag"], *names, STATE, ACTIONS, STATE, HORIZON, ACTIONS))
    state = stated.state(STATE_VALUE, folder.stats, folder.pack, STATE)
    asked = ["--input", "state=" + json.dumps([float(x) for x in state]), "--input", "text=" + chat]
    for key, name in zip(("first", "second"), names):
        asked += ["--input", "%s=@%s/made.safetensors#%s" % (key, folder.path, name)]
    model = numpy.float32(chunk(plain, *asked))
    transform = folder.config["action_decode_transform"]
    if transform == "auto":
        transform = "libero" if folder.config.get("embodiment_tag") == "libero_sim" else None
    if folder.unpacks == VECTOR:
        return numpy.array(by_folder), stated.vector(model, folder.stats, folder.unpack, transform), model
    return numpy.array(by_folder), stated.groups(model, STATE_VALUE, folder.pack, folder.unpack, transform), model


def agree(edit=None, groups=False, text="Pick up the Cup_2, please!", said="pick up the cup_2 please",
          names=("front", "wrist"), rows=HORIZON, after=lambda x, folder: x):
    folder = Folder(edit, groups)
    got, want, model = both(folder, text, said, names)
    want = after(want, folder)
    check(got.shape == want.shape and len(got) == rows, got.shape, want.shape)
    away = abs(got - want).max()
    check(away < 2e-6, away, got.tolist(), want.tolist())
    inside = numpy.mean(abs(model) < 1)
    check(0.3 < inside < 1 and numpy.ptp(got, axis=0).max() > 1e-3, inside, got.tolist())
    return got


@test
def a_vector_from_min_to_max():
    agree()


@test
def nothing_is_held_or_normalised():
    def edit(f):
        f.pack.update(clip_outliers=False, formalize_language=False)
        f.unpack.update(clip_normalized_action=False)
        f.sees.update(crop_fraction=0.5, shortest_image_edge=97, letter_box_transform=True)

    def held(x, folder):  # the engine's own bounds: as far outside of the statistics as those are wide
        low, high = (numpy.float32(folder.stats["action"][name]) for name in ("min", "max"))
        return numpy.clip(x, low - (high - low), high + (high - low))
    agree(edit, text="Pick it up.", said="Pick it up.", after=held)

    def off(f):
        f.pack.update(normalize_min_max=False)
        f.unpack.update(normalize_min_max=False)
        f.stats = {}
        f.sees.update(image_crop_size=None)
    agree(off, text=None, said="perform the task")


@test
def areas_and_cameras_in_their_order():
    def edit(f):
        f.sees.update(use_albumentations=True, letter_box_transform=True, crop_fraction=0.95)
        f.pack.update(video_modality_keys=["wrist", "front", "beyond"])
    agree(edit, names=("wrist", "front"))
    agree(lambda f: f.pack.update(video_modality_keys=["another"]))


@test
def the_state_is_added_behind_a_vector():
    def edit(f):
        f.config["use_relative_actions"] = True
        f.before = [step("relative_actions_processor", {"enabled": True, "exclude_joints": ["grip"], "action_names": [
            "a", "b", "grip", "c", "d"]})]
        f.after = [step("absolute_actions_processor", {"enabled": True})]
    mask = numpy.float32([1, 1, 0, 1, 1])
    agree(edit, after=lambda x, folder: x + mask * numpy.float32(STATE_VALUE[:5]))


@test
def groups_that_are_changes_with_statistics_by_row():
    agree(groups=True, names=("wrist", "front"), rows=5)


@test
def groups_that_are_places():
    def edit(f):
        f.unpack.update(use_relative_action=False, use_percentiles=False, env_action_dim=0)
        hand = f.unpack["raw_stats"]["action"]["hand"]  # one number in float32, in which LeRobot has them
        hand["min"][0], hand["max"][0] = 2000.00001, 2000.00002
        f.config["use_relative_actions"] = False
    agree(edit, groups=True, names=("wrist", "front"), rows=5)


@test
def grippers_of_libero():
    def edit(f):
        f.config.update(action_decode_transform="libero", embodiment_tag="libero_sim")
        f.pack.update(embodiment_tag="libero_sim")
    got = agree(edit, groups=True, names=("wrist", "front"), rows=5)
    check(set(got[:, 6]) <= {-1.0, 0.0, 1.0}, got[:, 6].tolist())

    def vector(f):
        edit(f)
        f.config["output_features"]["action"]["shape"] = [7]
        f.stats["action"] = numbers(7)
        f.unpack.update(env_action_dim=7, libero_gripper_action=True)
    got = agree(vector)
    check(set(got[:, 6]) <= {-1.0, 0.0, 1.0}, got[:, 6].tolist())

    def added(f):  # the step behind adds the state to a gripper that has been turned
        edit(f)
        f.unpack.update(use_relative_action=False)
        names = [str(i) for i in range(7)]
        f.before = [step("relative_actions_processor", {"enabled": True, "exclude_joints": [], "action_names": names})]
        f.after = [step("absolute_actions_processor", {"enabled": True})]
    agree(added, groups=True, names=("wrist", "front"), rows=5, after=lambda x, folder: x + numpy.float32(STATE_VALUE[:7]))

    def by_its_tag(f):  # auto: the tag decides
        edit(f)
        f.config.update(action_decode_transform="auto")
    got = agree(by_its_tag, groups=True, names=("wrist", "front"), rows=5)
    check(set(got[:, 6]) <= {-1.0, 0.0, 1.0}, got[:, 6].tolist())
    agree(lambda f: f.config.update(action_decode_transform="auto"), groups=True, names=("wrist", "front"), rows=5)


@test
def the_written_pipeline_is_the_folder():
    for groups in (False, True):
        folder = Folder(lambda f: f.config.update(n_action_steps=4), groups)
        code, out, err = call("init", folder.path)
        check(code == 0, err)
        check("EXECUTE <const> = 4" in out, out)
        written = folder.path + "/written.lua"
        open(written, "w").write(out)
        check(chunk(written, "--random-inputs", "1") == chunk(folder.path, "--random-inputs", "1"))
        for command in (("check", "--tokenizer", TOKENIZER), ("inspect",)):
            code, out, err = call(command[0], folder.path, *command[1:])
            check(code == 0, command, out, err)


def plan(*arguments):
    code, out, err = call("check", *arguments)
    check(code == 0, arguments, err)
    return out[out.index("device plan"):], out


@test
def a_folder_without_its_weights_runs_with_made_up_ones():
    for groups in (False, True):
        folder = Folder(None, groups)
        whole, _ = plan(folder.path, "--tokenizer", TOKENIZER)
        os.remove(folder.path + "/model.safetensors")
        random = (folder.path, "--random-weights", "1", "--tokenizer", TOKENIZER)
        bare, out = plan(*random)
        check(bare == whole and "W116" not in out, whole, bare, out)
        for name in os.listdir(folder.path):
            if name.endswith(".safetensors"):
                os.remove(folder.path + "/" + name)
        _, out = plan(*random)
        check("W116" in out and "policy_preprocessor.json" in out, out)
        code, out, err = call("run", *random, "--random-inputs", "1")
        check(code == 0, err)
    # The published base's sizes are known.
    def published(f):
        f.config.pop("base_model_path")
        for own in f.config, f.pack:
            own.update(max_state_dim=132, max_action_dim=132)
    folder = Folder(published)
    os.remove(folder.path + "/model.safetensors")
    plan(folder.path, "--random-weights", "1")


@test
def the_server_serves_a_folder():
    server = Server(Folder().path, "--tokenizer", TOKENIZER)
    s = server.connect()
    said = {"observation.images." + name: Array("|u1", [h, w, 3], bytes((31 * i) % 251 for i in range(h * w * 3)))
            for name, (h, w) in PICTURES.items()}
    s.send({**said, "observation.state": Array.floats(STATE_VALUE), "task": "pick up the cup"})
    reply = s.reply()
    check(list(reply["actions"].shape) == [HORIZON, 5], reply)
    server.end()


@test
def the_tokenizer_is_that_of_the_named_model():
    folder = Folder()
    asked = ["run", folder.path, "--random-inputs", "1", "--format", "json"]
    code, out, err = call(*asked)
    check(code != 0 and "policy_preprocessor.json names that of 'nvidia/Cosmos-Reason2-2B'" in err, err)
    shutil.copytree(TOKENIZER, W + "/Cosmos-Reason2-2B")
    code, out, err = call(*asked)
    shutil.rmtree(W + "/Cosmos-Reason2-2B")
    check(code == 0, err)


def refused(words, edit, groups=False):
    folder = Folder(edit, groups)
    code, out, err = call("init", folder.path)
    check(code != 0 and words in err, words, err)
    check(err.count("error[") <= 1, err)


@test
def what_is_wrong_with_a_step_is_refused_at_its_place():
    def of(part, **fields):
        return lambda f: getattr(f, part).update(fields)

    def without(part, *fields):
        return lambda f: [getattr(f, part).pop(field) for field in fields]

    refused("steps[2].config.whiten: is no option of groot_n1_7_pack_inputs_v1", of("pack", whiten=True))
    refused("steps[3].config.zoom: is no option of groot_n1_7_vlm_encode_v1", of("sees", zoom=2))
    refused("steps[0].config.fold: is no option of groot_action_unpack_unnormalize_v2", of("unpack", fold=1))
    refused("there is no groot_n1_7_vlm_encode_v1", lambda f: setattr(f, "sees", None))
    refused("model_name: must be the tokenizer's model", without("sees", "model_name"))
    refused("embodiment_tag: is 'gr1', but that of config.json is 'new_embodiment'", of("pack", embodiment_tag="gr1"))
    refused("must have its published number, 10", of("pack", embodiment_mapping={"new_embodiment": 9}))
    refused("must have its published number, 10", of("pack", embodiment_mapping={}))
    refused("max_state_dim: is 20, but that of config.json is 21", of("pack", max_state_dim=20))
    refused("max_action_dim: is 132, but that of config.json is 8", without("pack", "max_action_dim"))
    refused("max_state_dim: must be a whole number, is 21", lambda f: (
        of("pack", max_state_dim="21")(f), of("config", max_state_dim="21")(f)))
    refused("state_horizon: must be 1, is 2", of("pack", state_horizon=2))
    refused("state_horizon: must be 1, is false", of("pack", state_horizon=False))
    refused("video_horizon: must be 1, is 2", of("pack", video_horizon=2))
    refused("language_key: must be a name, is 5", of("pack", language_key=5))
    refused("language_key: must be a name, is ", of("pack", language_key=""))
    refused("formalize_language: must be true or false, is yes", of("pack", formalize_language="yes"))
    refused("clip_outliers: must be true or false", of("pack", clip_outliers=1))
    refused("video_modality_keys: must list names", of("pack", video_modality_keys=[1]))
    refused("'front' stands twice", of("pack", video_modality_keys=["front", "front"]))
    refused('input_features["observation.images.wrist"]: is not among', of("pack", video_modality_keys=["front"]))
    refused('input_features["observation.image"]: does not begin with observation.images', lambda f: (
        f.config["input_features"].update({"observation.image": {"type": "VISUAL", "shape": [3, 8, 8]}})))
    refused("must have 7 numbers observation.state.min", lambda f: f.stats.pop("observation.state"))
    refused("must have 7 numbers observation.state.min", lambda f: f.stats.update({"observation.state": numbers(6)}))
    refused("must have 5 numbers action.min", lambda f: f.stats.pop("action"))
    refused("action.min exceeds .max in entry 1", lambda f: f.stats["action"].update(min=[9.0] * 5))
    refused("env_action_dim: is 4, but the action of config.json has 5", of("unpack", env_action_dim=4))
    refused("libero_gripper_action: is true, but config.json's action_decode_transform says none",
            of("unpack", libero_gripper_action=True))
    refused("libero_gripper_action: is false, but", of("config", action_decode_transform="libero"))
    refused("action_decode_transform: must be auto, none or libero, is flip", of("config", action_decode_transform="flip"))
    refused("action_decode_transform: must be said for libero_sim", lambda f: (
        f.config.update(embodiment_tag="libero_sim"), f.config.pop("action_decode_transform", None),
        f.pack.update(embodiment_tag="libero_sim")))
    refused("chunk_size: must be a number of rows, is 0", of("config", chunk_size=0))
    refused("n_action_steps: 40 of a chunk_size of 5", of("config", chunk_size=5, n_action_steps=40))
    refused("tokenizer_assets_repo: is of GR00T N1.5", of("config", tokenizer_assets_repo="lerobot/eagle"))
    refused("action_decode_transform: is libero, but", of("unpack", action_decode_transform="libero"), True)


@test
def what_is_wrong_with_pictures_is_refused():
    def of(**fields):
        return lambda f: f.sees.update(fields)

    refused("image_target_size: must be [height, width]", of(image_target_size=None))
    refused("image_target_size: must be [height, width]", of(image_target_size=[256]))
    refused("image_crop_size: must be [height, width]", of(image_crop_size=230))
    refused("image_crop_size: must leave a part above 0 and at most 1", of(image_crop_size=[512, 512]))
    refused("crop_fraction: must leave a part above 0", of(crop_fraction=0.0))
    refused("shortest_image_edge: must be a number of pixels, is -1", of(shortest_image_edge=-1))
    refused("pictures of 224 x 224 are not run; the model takes 256 x 256", of(
        image_target_size=[224, 224], image_crop_size=[200, 200]))
    refused("letter_box_transform: must be true with use_albumentations", of(use_albumentations=True))
    refused("shortest_image_edge: pictures of 320 x 320", of(use_albumentations=True, letter_box_transform=True,
                                                             shortest_image_edge=320))


@test
def what_is_wrong_with_groups_is_refused():
    def of(what, **fields):
        return lambda f: f.unpack["modality_config"][what].update(fields)

    def one(i, **fields):
        return lambda f: f.unpack["modality_config"]["action"]["action_configs"][i].update(fields)

    for words, edit in (
            ("raw_stats: must be there", lambda f: f.unpack.update(raw_stats=None)),
            ("modality_config.action: must be there", lambda f: f.unpack.update(modality_config=None)),
            ("action.modality_keys: must list names", of("action", modality_keys=["arm", 1])),
            ("'arm' stands twice", of("action", modality_keys=["arm", "arm", "hand"])),
            ("action.delta_indices: must list steps", of("action", delta_indices=None)),
            ("action.delta_indices: must list steps", of("action", delta_indices=["a", 1, 2, 3, 4])),
            ("action.action_configs: must have one for each of 3", of("action", action_configs=None)),
            ("action.action_configs: must have one for each of 3", of("action", action_configs=[{}])),
            ("mean_std_embedding_keys: is not supported", of("action", mean_std_embedding_keys=["arm"])),
            ("action_configs[0].type: poses that are relative", one(0, type="eef", format="xyz+rot6d")),
            ("action_configs[1].rep: must be RELATIVE, ABSOLUTE or DELTA, is turned", one(1, rep="turned")),
            ("the state has no 'leg'", one(0, state_key="leg")),
            ("'hand' of the state has 2 entries, the action 4", one(0, state_key="hand")),
            ("has numbers for 5 rows of 6", of("action", delta_indices=list(range(6)))),
            ("relative_action.arm.min: must list numbers",
             lambda f: f.unpack.update(raw_stats={**f.unpack["raw_stats"], "relative_action": {}})),
            ("the groups make 7 columns, of which the last are cut off", lambda f: f.unpack.update(env_action_dim=6)),
            ("the groups make 7 columns, the action of config.json has 8",
             lambda f: f.config["output_features"]["action"].update(shape=[8])),
            ("the groups have 7 entries, the state 6", lambda f: (
                f.config["input_features"]["observation.state"].update(shape=[6]),
                f.stats.update({"observation.state": numbers(6)}))),
            ("raw_stats.state.arm: must list numbers",
             lambda f: f.pack.update(raw_stats={**f.pack["raw_stats"], "state": {"hand": numbers(2)}})),
            ("needs a group 'gripper' of one column", lambda f: (
                f.config.update(action_decode_transform="libero"),
                f.unpack["modality_config"]["action"].update(modality_keys=["arm", "hand", "finger"]),
                f.unpack["raw_stats"]["action"].update(finger=numbers(1)))),
            ("absolute_actions_processor adds the state, too", lambda f: (
                f.before.append(step("relative_actions_processor", {"enabled": True, "exclude_joints": []})),
                f.after.append(step("absolute_actions_processor", {"enabled": True}))))):
        refused(words, edit, True)


@test
def a_description_and_its_folder_know_the_same_robots():
    def numbers_in(path, name):
        block = re.search(name + r"[^{]*{([^}]*)}", open("pipelines/" + path).read()).group(1)
        return dict(re.findall(r"(\w+)\s*=\s*(\d+)", block))
    for name in ("groot_n15", "groot_n17"):
        of_model = numbers_in("models/%s.lua" % name, "embodiments")
        of_folder = numbers_in("robots/lerobot/%s.lua" % name, "published")
        check(of_folder and of_model == of_folder, of_model, of_folder)


@test
def sizes_are_those_of_the_base_model():
    refused("whose config.json is not there", lambda f: f.config.update(base_model_path="nvidia/nowhere"))
    refused("must be a Gr00tN1d7, is gr00t_n1_5", lambda f: f.base.update(model_type="gr00t_n1_5"))
    refused("must be a Gr00tN1d7, is groot", lambda f: f.base.update(type="groot"))
    refused("max_state_dim: is 21, but that of nvidia/base", lambda f: f.base.update(max_state_dim=22))
    refused("error[E011]: base_model_path: must be a name", lambda f: f.config.update(base_model_path=5))
    refused("whose config.json is not there", lambda f: (f.base.update(model_name="nvidia/none"), setattr(f, "vlm", None)))


if __name__ == "__main__":
    sys.exit(main())
