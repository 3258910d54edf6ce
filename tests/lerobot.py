"""lerobot.py - folders as LeRobot saves them, run by their paths alone. usage: lerobot.py PROGRAM FOLDER

The weights are those of two small golden checkpoints; configuration, processors and statistics are
written here. What the program makes of them is compared with formulas in float32 of this file.
"""

import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

from serve_client import Array
from serve_harness import PROGRAM, Server, check, main, test

W = sys.argv[2]
PI05, PI0 = ("tests/golden/pi/%s_lerobot/checkpoint/pretrained_model" % name for name in ("pi05_odd", "pi0_tiny"))
STATE, ACTION = "observation.state", "action"
STATS = ["mean", "std", "min", "max", "q01", "q99", "q10", "q90"]
MODES = {"MEAN_STD": None, "MIN_MAX": ("min", "max"), "QUANTILES": ("q01", "q99"), "QUANTILE10": ("q10", "q90")}
count = 0


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def read_tensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, t in json.loads(data[8:8 + n]).items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        code, size = {"F32": ("f", 4), "F64": ("d", 8), "I64": ("q", 8), "I32": ("i", 4)}[t["dtype"]]
        tensors[name] = struct.unpack("<%d%s" % ((end - begin) // size, code), data[8 + n + begin:8 + n + end])
    return tensors


def list_tensors(path):
    data = open(path, "rb").read()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [at, at + 4 * len(values)]}
        at += 4 * len(values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(struct.pack("<%df" % len(values), *values))


def statistics(n):
    """Of n entries; the second never moved."""
    s = {name: [] for name in STATS}
    for i in range(n):
        middle, width = 0.25 * i - 0.5, 0.0 if i == 1 else 1.0 + 0.5 * i
        for name, k in zip(STATS[2:], (-1.0, 1.0, -0.9, 0.9, -0.7, 0.7)):
            s[name].append(f32(middle + k * width))
        s["mean"].append(f32(middle + 0.01))
        s["std"].append(f32(0.4 * width))
    return s


def step(processor, name):
    return next(s for s in processor["steps"] if s["registry_name"] == name)


class Folder:
    """A copy of `base`, whose files `edit` may change: config, before, after."""

    def __init__(self, base=PI05, edit=None):
        global count
        count += 1
        self.path = "%s/folder%d" % (W, count)
        shutil.copytree(base, self.path)
        names = {"config": "config", "before": "policy_preprocessor", "after": "policy_postprocessor"}
        files = {key: "%s/%s.json" % (self.path, name) for key, name in names.items()}
        self.tokenizer = None
        for key, path in files.items():
            setattr(self, key, json.load(open(path)))
        if edit:
            edit(self)
        for key, path in files.items():
            json.dump(getattr(self, key), open(path, "w"), indent=2)

    def normalise(self, state, action):
        """Write these statistics for both steps, in modes by their names."""
        self.stats = {STATE: statistics(self.config["input_features"][STATE]["shape"][0]),
                      ACTION: statistics(self.config["output_features"][ACTION]["shape"][0])}
        tensors = {"%s.%s" % (f, s): v for f, all_ in self.stats.items() for s, v in all_.items()}
        for s in (step(self.before, "normalizer_processor"), step(self.after, "unnormalizer_processor")):
            s["config"]["norm_map"] = {"VISUAL": "IDENTITY", "STATE": state, "ACTION": action}
            write_tensors("%s/%s" % (self.path, s["state_file"]), tensors)

    def relative(self, **config):
        step(self.before, "relative_actions_processor")["config"] = {"enabled": True, **config}
        step(self.after, "absolute_actions_processor")["config"] = {"enabled": True}
        self.config["use_relative_actions"] = True


def call(*arguments):
    p = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300)
    return p.returncode, p.stdout, p.stderr


def frames(pipeline, *options):
    """The frames of a run that must succeed: chunks of actions."""
    code, out, err = call("run", pipeline, "--format", "json", "--threads", "1", *options)
    check(code == 0, code, err)
    return [json.loads(line)["actions"] for line in out.splitlines()]


STATE_VALUE = [0.1, -0.5, 0.3, 0.7, -0.2, 1.1, 0.4, -0.9]


def inputs(folder, cameras=None):
    n = folder.config["input_features"][STATE]["shape"][0]
    given = ["--input", "observation.state=%s" % json.dumps(STATE_VALUE[:n]), "--input", "task=pick up the cup"]
    for name, f in folder.config["input_features"].items():
        if f["type"] == "VISUAL" and "empty" not in name:
            given += ["--input", "%s=@%s/picture.safetensors#picture" % ((cameras or {}).get(name, name), W)]
    return given


def write_picture():
    h, w = 34, 45
    data = bytes((31 * i) % 251 for i in range(h * w * 3))
    header = json.dumps({"picture": {"dtype": "U8", "shape": [h, w, 3], "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)
    open(W + "/picture.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + data)


def normalised(x, s, i, mode):
    if mode == "IDENTITY":
        return x
    if mode == "MEAN_STD":
        return f32(f32(x - s["mean"][i]) / f32(s["std"][i] + f32(1e-8)))
    low, high = (s[name][i] for name in MODES[mode])
    d = f32(high - low) or f32(1e-8)
    return f32(f32(f32(2 * f32(x - low)) / d) - 1)


def unnormalised(x, s, i, mode):
    if mode == "IDENTITY":
        return x
    if mode == "MEAN_STD":
        return f32(f32(x * s["std"][i]) + s["mean"][i])
    low, high = (s[name][i] for name in MODES[mode])
    d, up = f32(high - low) or f32(1e-8), f32(x + 1)
    return f32((f32(f32(up / 2) * d) if mode == "MIN_MAX" else f32(f32(up * d) / 2)) + low)


def run_dump(folder, cameras=None):
    path = folder.path + ".dump.safetensors"
    made = frames(folder.path, "--dump", path, *inputs(folder, cameras))
    dump = read_tensors(path)
    width, columns = folder.config["max_action_dim"], folder.config["output_features"][ACTION]["shape"][0]
    chunk = [dump["chunk"][i:i + width][:columns] for i in range(0, len(dump["chunk"]), width)]
    return made[0]["act"], chunk, dump["state"]


@test
def a_folder_and_its_written_pipeline_give_equal_bytes():
    for base in (PI05, PI0):
        folder = Folder(base)
        file = "%s.lua" % folder.path
        code, out, err = call("init", folder.path, "-o", file)
        check((code, out) == (0, ""), code, out, err)
        check(call("init", folder.path)[1] == open(file).read(), "to standard output")
        a = frames(folder.path, *inputs(folder), "-n", "3")
        check(len(a) == 3 and a == frames(file, *inputs(folder), "-n", "3"))
        check(call("init", folder.path, "-o", file)[0] == 3, "an edited file stays")
        above = folder.path + "_above"
        os.mkdir(above)
        os.rename(folder.path, above + "/pretrained_model")
        check(a == frames(above, *inputs(folder), "-n", "3"), "the folder above")


@test
def a_folder_is_checked_drawn_expanded_and_interpreted():
    folder = Folder()
    code, out, err = call("check", "--strict", folder.path)
    check(code == 0 and "ok  5 inputs, 2 resources, 2 nodes" in out, out, err)
    check(call("graph", "-T", "text", "--compiled", folder.path)[0] == 0)
    code, out, err = call("expand", folder.path)
    form = json.loads(out)
    check(form["robot"]["execute"] == 5 and form["robot"]["prompt"]["max_tokens"] == 96, out)
    check(abs(form["frame"]["period_ms"] - 5000 / 30) < 1e-9, "the default rate")
    check(frames(folder.path, *inputs(folder)) == frames(folder.path, "--interpret", *inputs(folder)))
    random = ["--random-weights", "3", "--size", "tiny", "--random-inputs", "1", "-n", "5"]
    check(frames(folder.path, *random) == frames(folder.path, "--interpret", *random))


@test
def the_server_serves_a_folder():
    folder = Folder()
    server = Server(folder.path)
    s = server.connect()
    picture = Array("|u1", [34, 45, 3], bytes((31 * i) % 251 for i in range(34 * 45 * 3)))
    said = {name: picture for name in folder.config["input_features"] if "images" in name}
    said.update({STATE: Array.floats(STATE_VALUE[:6]), "task": "pick up the cup"})
    s.send(said)
    reply = s.reply()
    check(list(reply["actions"].shape) == [7, 7], reply.get("actions"))
    server.end()


def resized(picture, h, w, side):
    """Bytes to floats of 0 .. 1, bilinear without antialias, in the middle of a black square: [side, side, 3]."""
    ratio = max(h / side, w / side)
    rows, columns = int(h / ratio), int(w / ratio)

    def places(n, m):
        for i in range(m):
            at = max((i + 0.5) * n / m - 0.5, 0.0)
            yield min(int(at), n - 1), min(int(at) + 1, n - 1), at - int(at)

    out = [0.0] * (side * side * 3)
    for y, (a, b, down) in enumerate(places(h, rows)):
        for x, (c, d, right) in enumerate(places(w, columns)):
            for k in range(3):
                one, two = (((1 - right) * picture[(r * w + c) * 3 + k] + right * picture[(r * w + d) * 3 + k])
                            for r in (a, b))
                at = ((y + (side - rows) // 2) * side + x + (side - columns) // 2) * 3 + k
                out[at] = ((1 - down) * one + down * two) / 255
    return out


@test
def pictures_are_read_as_the_resize_gives_them():
    for base, side in ((PI05, 30), (PI0, 28)):
        folder = Folder(base)
        asked = inputs(folder) + ["--dtype", "f32"]
        floats = resized(bytes((31 * i) % 251 for i in range(34 * 45 * 3)), 34, 45, side)

        def given(values):
            path = "%s/resized.safetensors" % folder.path
            header = json.dumps({"picture": {"dtype": "F32", "shape": [side, side, 3],
                                             "data_offsets": [0, 4 * len(values)]}}).encode()
            header += b" " * (-len(header) % 8)
            with open(path, "wb") as file:
                file.write(struct.pack("<Q", len(header)) + header + struct.pack("<%df" % len(values), *values))
            return frames(folder.path, *(a.replace(W + "/picture.safetensors", path) for a in asked))[0]["act"]

        def away(one, two):
            return max(abs(a - b) for x, y in zip(one, two) for a, b in zip(x, y))

        raw = frames(folder.path, *asked)[0]["act"]
        near, rounded = away(raw, given(floats)), away(raw, given([round(255 * x) / 255 for x in floats]))
        check(near < 2e-5 < rounded, near, rounded)


@test
def normalisation_is_the_reference_to_the_bit():
    for mode in ["IDENTITY", *MODES]:
        folder = Folder(PI0, lambda f: f.normalise(mode, mode))
        actions, chunk, state = run_dump(folder)
        for i, x in enumerate(STATE_VALUE):
            check(f32(state[i]) == normalised(f32(x), folder.stats[STATE], i, mode), mode, i, state[i])
        compared = 0
        for row, of in zip(actions, chunk):
            for i, x in enumerate(of):
                if abs(x) < 2.9:  # beyond that the limits of the statistics hold
                    compared += 1
                    check(row[i] == unnormalised(x, folder.stats[ACTION], i, mode), mode, i, x, row[i])
        check(compared > 40, mode, compared)


@test
def observations_that_the_step_leaves_out_stay_as_they_are():
    def edit(f):
        f.normalise("MEAN_STD", "MEAN_STD")
        for steps, name in (f.before, "normalizer_processor"), (f.after, "unnormalizer_processor"):  # both, as written
            step(steps, name)["config"]["normalize_observation_keys"] = ["observation.other"]
    state = run_dump(Folder(PI0, edit))[2]
    check(list(state[:8]) == [f32(x) for x in STATE_VALUE], state)


@test
def relative_actions_are_added_to_the_state():
    names = ["Shoulder.pos", "elbow.pos", "wrist.pos", "left_GRIPPER.pos", "roll.pos", "gripper.pos", "yaw.pos"]
    for excluded, wanted in (([], [True] * 7), (["gripper", ""], [True, True, True, False, True, False, True])):
        def edit(f):
            f.normalise("MEAN_STD", "MEAN_STD")
            f.relative(action_names=names, exclude_joints=excluded)
        folder = Folder(PI0, edit)
        actions, chunk, _ = run_dump(folder)
        for row, of in zip(actions, chunk):
            for i, x in enumerate(of):
                place = unnormalised(x, folder.stats[ACTION], i, "MEAN_STD") + wanted[i] * STATE_VALUE[i]
                check(abs(row[i] - place) < 1e-6, excluded, i, row[i], place)


@test
def a_robot_that_adds_the_state_elsewhere_is_refused():
    def edit(f):
        f.relative(action_names=["a", "b", "c", "gripper", "d", "e", "f"], exclude_joints=["gripper"])
    folder = Folder(PI0, edit)
    text = call("init", folder.path)[1]
    check("add_state" in text, text)
    for at, said in (("1, 2, 3, 4, 5, 6, 7", "adds to column 4, which is a place"),
                     ("1, 2, 3, 5, 6", "leaves out column 7, which is a change of the state")):
        file = folder.path + ".lua"
        open(file, "w").write(re.sub(r"at = \{[^}]*\}", "at = { %s }" % at, text))
        code, out, err = call("check", file)
        check(code == 1 and said in out, code, out, err)
    open(file, "w").write(re.sub(r"ops = \{ \{.*\} \}, size", "size", text))
    code, out, err = call("check", file)
    check(code == 1 and "error[E060]" in out and "differences from the state would leave as places" in out, out, err)


@test
def renamed_observations_are_asked_for_by_the_robots_names():
    front, joints = "observation.images.front", "observation.joints"

    def edit(f):
        first = next(iter(f.config["input_features"]))
        step(f.before, "rename_observations_processor")["config"]["rename_map"] = {front: first, joints: STATE}
    plain, folder = Folder(PI0), Folder(PI0, edit)
    first = next(iter(folder.config["input_features"]))
    given = [x.replace(STATE, joints) for x in inputs(folder, {first: front})]
    check(frames(folder.path, *given) == frames(plain.path, *inputs(plain)))


@test
def a_rename_to_no_feature_is_warned_of():
    front, misspelt = "observation.images.front", "observation.images.base_0_rgp"
    folder = Folder(PI0, set_("before", "steps", 0, "config", "rename_map", {front: misspelt}))
    code, out, err = call("check", "--format", "json", folder.path)
    found = [e for e in map(json.loads, out.splitlines()) if e["code"] == "W113"]
    check(code == 0 and len(found) == 1, code, out, err)
    e = found[0]
    check(e["file"] == folder.path + "/policy_preprocessor.json" and e["line"] > 0, e)
    for name in [front, misspelt, *folder.config["input_features"]]:
        check("'%s'" % name in e["message"], name, e)
    code, out, err = call("init", folder.path)
    check(code == 0 and "warning[W113]" in err and "return pipeline" in out, code, err)
    check(frames(folder.path, *inputs(folder)) == frames(Folder(PI0).path, *inputs(folder)))
    own = next(iter(folder.config["input_features"]))
    folder = Folder(PI0, set_("before", "steps", 0, "config", "rename_map", {own: misspelt}))
    code, out, err = call("check", folder.path)
    check(code == 0 and "'%s' is read by its own name" % own in out + err, code, out, err)
    check(frames(folder.path, *inputs(folder)) == frames(Folder(PI0).path, *inputs(folder)))
    for verb in "check", "init":
        code, out, err = call(verb, Folder(PI0).path)
        check(code == 0 and "W113" not in out + err, verb, out, err)


@test
def a_robot_of_ones_own_changes_lerobots():
    folder = Folder(PI0)
    mine = folder.path + "_mine"
    os.mkdir(mine)
    text = call("init", folder.path)[1]
    begin, end = text.index("  robot  = {"), text.index("  -- A frame for")
    open(mine + "/p.lua", "w").write(text[:begin] + '  robot = "robot.lua",\n' + text[end:])
    open(mine + "/robot.lua", "w").write('local robot = include "lerobot.lua"\nrobot.actions.max_rows = 2\nreturn robot\n')
    own, whole = frames(mine + "/p.lua", *inputs(folder)), frames(folder.path, *inputs(folder))
    check(len(own[0]["act"]) == 2 and own[0]["act"] == whole[0]["act"][:2], own)
    code, out, err = call("run", "--random-weights", "1", "--size", "tiny", mine + "/p.lua")
    check(code == 3 and "read from a LeRobot checkpoint" in err and "tectum init DIR" in err, code, out, err)
    open(mine + "/robot.lua", "w").write('local robot = include "nowhere.lua"\nreturn robot\n')
    code, out, err = call("check", mine + "/p.lua")
    check(code == 1 and 'include "nowhere.lua"' in out, code, out, err)


@test
def four_cameras_and_one_that_nobody_has():
    def edit(f):
        shape = next(iter(f.config["input_features"].values()))
        for name in ("side", "back"):
            f.config["input_features"]["observation.images." + name] = shape
    folder = Folder(PI0, edit)
    text = call("init", folder.path)[1]
    check('{ slot = "observation.images.empty_camera_0" }' in text and text.count("image  {") == 4, text)
    check(len(frames(folder.path, *inputs(folder))) == 1)
    random = ["--random-weights", "3", "--size", "tiny", "--random-inputs", "1"]
    check(len(frames(folder.path, *random)) == 1)


@test
def strange_names_stay_names():
    name = 'observation.images.a"b\\c]] \u00e9'

    def edit(f):
        features = f.config["input_features"]
        f.config["input_features"] = {name if "image2" in k else k: v for k, v in features.items()}
    code, out, err = call("check", Folder(PI0, edit).path)
    check(code == 1 and "must be a name" in out and "\\034b\\092c]]" in out, out, err)


def set_(*path):
    """An edit of the folder: path[:-2] leads to a table, path[-2] is its key, path[-1] the value."""
    def edit(f):
        x = getattr(f, path[0])
        for key in path[1:-2]:
            x = x[key]
        x[path[-2]] = path[-1]
    return edit


def drop(name):
    def edit(f):
        f.before["steps"] = [s for s in f.before["steps"] if s["registry_name"] != name]
    return edit


def absolute_only(f):
    step(f.after, "absolute_actions_processor")["config"]["enabled"] = True


def relative_only(f):
    step(f.before, "relative_actions_processor")["config"]["enabled"] = True


def add_step(s):
    return lambda f: f.before["steps"].insert(3, s)


WRONG = [
    (set_("config", "type", "diffusion"), "config", "type: 'diffusion' is not run by this release; it runs .*pi05"),
    (set_("config", "use_visual_memory", True), "config", "use_visual_memory: is not supported"),
    (set_("config", "use_peft", True), "config", "use_peft: .*adapter"),
    (set_("config", "image_resolution", [30, 40]), "config", "image_resolution: the model takes pictures of 30 x 30"),
    (set_("config", "n_obs_steps", 2), "config", "n_obs_steps: observations of 2 steps"),
    (set_("config", "rtc_config", {"enabled": True, "mode": "trained"}), "config", "rtc_config.mode: 'trained' is not"),
    (set_("config", "rtc_config", {"enabled": True, "prefix_attention_schedule": "COS"}), "config",
     "rtc_config.prefix_attention_schedule: must be ZEROS"),
    (set_("config", "n_action_steps", 9), "config", "n_action_steps: 9 of a chunk of 7"),
    (set_("config", "input_features", STATE, "shape", [2, 3]), "config", 'input_features.*shape: must be the length'),
    (set_("config", "input_features", "observation.environment_state", {"type": "ENV", "shape": [3]}), "config",
     "pi05 does not read it"),
    (set_("config", "input_features", "observation.images.base_0_rgb", "shape", [224, 224, 3]), "config",
     r'input_features.*shape: must be \[3, height, width\]'),
    (set_("config", "dtype", "bfloat17"), "config", "dtype: must be float32, bfloat16 or float16, is bfloat17"),
    (set_("config", "output_features", {}), "config", "output_features: has no action"),
    (set_("config", "use_relative_actions", True), "config", "use_relative_actions: is true, but .*is not enabled"),
    (set_("before", "steps", 0, "config", "rename_map", 3), "policy_preprocessor", "rename_map: must be names"),
    (set_("before", "steps", 2, "config", "enabled", 1), "policy_preprocessor", "enabled: must be true or false"),
    (relative_only, "policy_preprocessor", r"steps\[2\].config.enabled: absolute_actions_processor .*is not"),
    (absolute_only, "policy_postprocessor", r"steps\[1\].config.enabled: relative_actions_processor .*is not"),
    (add_step({"registry_name": "image_crop_resize_processor", "config": {}}), "policy_preprocessor",
     r"steps\[3\].registry_name: step 'image_crop_resize_processor' is not known for pi05"),
    (add_step({"class": "my.Own", "config": {}}), "policy_preprocessor", r"steps\[3\].class: step 'my.Own' is not known"),
    (add_step({"registry_name": "to_batch_processor"}), "policy_preprocessor", r"steps\[3\].registry_name: .*twice"),
    (drop("normalizer_processor"), "policy_preprocessor", "steps: there is no normalizer_processor"),
    (drop("tokenizer_processor"), "policy_preprocessor", "steps: there is no tokenizer_processor"),
    (set_("before", "steps", 3, "config", "norm_map", "VISUAL", "MEAN_STD"), "policy_preprocessor",
     r"steps\[3\].config.norm_map.VISUAL: MEAN_STD"),
    (set_("before", "steps", 6, "config", "float_dtype", "bfloat16"), "policy_preprocessor", "float_dtype: "),
    (set_("before", "steps", 3, "config", "clip", 5.0), "policy_preprocessor",
     r"steps\[3\].config.clip: is no option of normalizer_processor that is run; known are .*norm_map"),
    (set_("before", "steps", 1, "config", "axis", 1), "policy_preprocessor",
     r"steps\[1\].config.axis: is no option of to_batch_processor that is run; it has none"),
    (set_("before", "steps", 1, "config", "all"), "policy_preprocessor", r"steps\[1\].config: must be options"),
    (set_("before", "steps", 5, "config", "truncation", False), "policy_preprocessor", "truncation: must be true"),
    (set_("after", "steps", 0, "config", "scale", 2.0), "policy_postprocessor",
     r"steps\[0\].config.scale: is no option of unnormalizer_processor"),
    (set_("before", "steps", 5, "config", "padding_side", "left"), "policy_preprocessor", "padding_side: must be right"),
    (set_("before", "steps", 5, "config", "max_length", "long"), "policy_preprocessor", "max_length: must be"),
    (set_("before", "steps", 0, "config", "rename_map", {"a.b": STATE, "c": STATE}), "policy_preprocessor",
     r'rename_map\["c"\]: \'a.b\' becomes'),
    (set_("before", "steps", 2, "config", {"enabled": True, "exclude_joints": "gripper"}), "policy_preprocessor",
     r"steps\[2\].config.exclude_joints: must be a list"),
]


@test
def what_is_not_run_is_refused_at_its_place():
    for edit, file, said in WRONG:
        folder = Folder(PI05, edit)
        code, out, err = call("check", "--format", "json", folder.path)
        entries = [json.loads(line) for line in out.splitlines()]
        check(code == 1 and len(entries) == 1, said, code, out, err)
        e = entries[0]
        check(e["file"] == "%s/%s.json" % (folder.path, file) and e["line"] > 0, said, e)
        check(re.search(said, e["message"]), said, e)
        code, out, err = call("run", folder.path)
        check(code == 3 and re.search(said, err), said, err)


def without_tokenizer(f):
    f.tokenizer = f.path + "_tokenizer"
    shutil.move(f.path + "/tokenizer", f.tokenizer)
    s = step(f.before, "tokenizer_processor")
    s["config"]["tokenizer_name"] = "some/tok-en.1"
    s.pop("artifacts", None)


@test
def a_tokenizer_is_found_or_asked_for_by_its_name():
    plain = Folder(PI05)
    want = frames(plain.path, *inputs(plain))
    folder = Folder(PI05, without_tokenizer)
    code, out, err = call("run", folder.path, *inputs(folder))
    check(code == 3 and "names that of 'some/tok-en.1'; copy its tokenizer.json into %s" % folder.path in err, err)
    check(frames(folder.path, "--tokenizer", folder.tokenizer + "/tokenizer.json", *inputs(folder)) == want, "given")
    hub = folder.path + "_hub"
    model = hub + "/hub/models--some--tok-en.1"
    os.makedirs(model + "/snapshots/0a1b")
    os.makedirs(model + "/refs")
    shutil.copy(folder.tokenizer + "/tokenizer.json", model + "/snapshots/0a1b/")
    os.environ["HF_HOME"] = hub
    for revision, found in (("0a1b", True), ("0a1b\n", True), ("../0a1b", False), ("", False), ("ffff", False)):
        open(model + "/refs/main", "w").write(revision)
        check((call("run", folder.path, *inputs(folder))[0] == 0) == found, revision)
    open(model + "/refs/main", "w").write("0a1b")
    check(frames(folder.path, *inputs(folder)) == want, "downloaded before")
    os.environ["HF_HOME"] = "/nowhere"
    beside = os.path.dirname(folder.path) + "/tok-en.1"
    shutil.copytree(folder.tokenizer, beside)
    check(frames(folder.path, *inputs(folder)) == want, "beside the folder")
    shutil.rmtree(beside)


@test
def robots_observations_give_the_references_actions():
    compared = []
    for path in sorted(glob.glob("tests/golden/*/*/case.json")):
        case, at = json.load(open(path)), os.path.dirname(path)
        folder = "%s/checkpoint/pretrained_model" % at
        bound = case.get("tensors", {}).get("robot_actions")
        if case["kind"] != "actions" or not bound or not os.path.exists(folder) or case.get("config_overrides"):
            continue
        names, wanted = list_tensors(at + "/inputs.safetensors"), read_tensors(at + "/expected.safetensors")["robot_actions"]
        config = json.load(open(folder + "/config.json"))
        features = {n: f for n, f in config["input_features"].items() if "empty_camera" not in n}
        if any(f["type"] == "VISUAL" and "image." + n not in names for n, f in features.items()):
            continue  # a camera that is absent
        given = []
        for name, f in features.items():
            tensor = "image." + name if f["type"] == "VISUAL" else name
            given += ["--input", "%s=@%s/inputs.safetensors#%s" % (name, at, tensor)]
        if "task" in case:
            given += ["--input", "task=" + case["task"]]
        if "noise" in names:
            given += ["--noise", "@%s/inputs.safetensors#noise" % at]
        file = "%s/%s.lua" % (W, at.replace("/", "_"))
        code, out, err = call("init", folder, "-o", file)
        check(code == 0, at, err)
        text = re.sub("actions = \\{", "actions = { limits = false,", open(file).read())
        open(file, "w").write(text.replace("}, weights", '}, dtype = "f32", weights').replace(
            "model { arch", 'model { dtype = "f32", arch'))
        rows = [x for row in frames(file, *given)[0]["act"] for x in row]
        rms = (sum(x * x for x in wanted) / len(wanted)) ** 0.5
        most = max(abs(a - b) for a, b in zip(rows, wanted))
        check(len(rows) == len(wanted) and most <= max(4 * bound["err_fp32"]["max"], 2e-6 * rms), at, most, bound)
        compared.append(at)
    return None if compared else "no golden case of a robot's observation"


@test
def folders_that_are_not_whole():
    folder = Folder()
    os.remove(folder.path + "/policy_postprocessor.json")
    code, out, err = call("check", folder.path)
    check(code == 1 and "policy_postprocessor.json" in out and "migrate_policy_normalization" in out, out, err)
    shutil.rmtree(folder.path)
    check(call("run", folder.path)[0] == 3)
    code, out, err = call("serve", "tests/golden/demo/episodes/checkpoint")
    check(code == 3 and "layout openpi, which does not describe its robot" in err, err)


os.environ.pop("HF_HUB_CACHE", None)
os.environ["HF_HOME"] = "/nowhere"
write_picture()
sys.exit(main())
