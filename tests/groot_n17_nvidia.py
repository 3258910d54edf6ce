"""groot_n17_nvidia.py - a folder of GR00T N1.7 as Isaac-GR00T saves it runs by its path alone. usage:
groot_n17_nvidia.py PROGRAM FOLDER

The network is that of groot_n17_folder.py; processor_config.json, statistics.json and embodiment_id.json are those of
groot_folder.py, whose formulas say what stands around it, with the fields that gr00t/model/gr00t_n1d7/
processing_gr00t_n1d7.py of the public repository saves. A pipeline whose robot changes nothing is given what these
make; both must make the same actions.
"""
import json
import sys

import numpy

import groot_folder as n16
import groot_n17_folder as n17
import serve_harness
from groot_areas import seen
from serve_harness import check, main, test, write_safetensors

serve_harness.tests.clear()  # those of the two files run by themselves
W, TAG, EDGE = sys.argv[2], n16.TAG, 256
PICTURES = {"front": (300, 400), "wrist": (280, 280)}


class Folder:
    """A folder whose files `edit` may change: processor, statistics, ids."""

    def __init__(self, edit=None):
        made = n17.Folder()
        self.path = "%s/%s" % (W, made.name)
        self.processor, self.statistics, self.ids = n16.processor(), n16.statistics(), {TAG: 10, "other_arm": 2}
        self.processor["processor_class"] = "Gr00tN1d7Processor"
        self.own.update(model_name="nvidia/Cosmos-Reason2-2B", model_type="qwen", shortest_image_edge=EDGE,
                        letter_box_transform=True, use_mean_std=False, exclude_state=False, state_dropout_prob=0.0)
        if edit:
            edit(self)
        for file, value in (("processor_config", self.processor), ("statistics", self.statistics),
                            ("embodiment_id", self.ids)):
            json.dump(value, open("%s/%s.json" % (self.path, file), "w"), indent=2)

    @property
    def own(self):
        return self.processor["processor_kwargs"]


PLAIN = n17.PLAIN.replace("observation.images.%s", "video.%s").replace("steps = 3, ", "")


def agree(edit=None, text="Pick up the Cup_2, please!", said="pick up the cup_2 please"):
    folder = Folder(edit)
    raw = {name: n17.random.integers(0, 256, (*PICTURES[name], 3), dtype=numpy.uint8) for name in PICTURES}
    path = folder.path + "/raw.safetensors"
    write_safetensors(path, raw)
    asked = ["--embodiment", TAG, "--input", "annotation.human.task_description=" + text]
    for name in raw:
        asked += ["--input", "video.%s=@%s#%s" % (name, path, name)]
    for key, value in n16.STATE_VALUE.items():
        asked += ["--input", "state.%s=%s" % (key, json.dumps(value))]
    got = numpy.array(n16.chunk(folder.path, *asked))

    made = {name: seen(x, EDGE, folder.own["crop_fraction"]) for name, x in raw.items()}
    write_safetensors(folder.path + "/made.safetensors", made)
    chat = "<|im_start|>user\n" + 2 * "<|vision_start|><|image_pad|><|vision_end|>" + said + "<|im_end|>\n"
    plain = folder.path + "/plain.lua"
    with open(plain, "w") as file:
        file.write(PLAIN % (folder.path, TAG, *PICTURES, n17.STATE, n17.ACTIONS, n17.STATE, n17.HORIZON, n17.ACTIONS))
    asked = ["--input", "state=" + json.dumps([float(x) for x in n16.measured(folder, n16.STATE_VALUE)]),
             "--input", "text=" + chat]
    for key, name in zip(("first", "second"), PICTURES):
        asked += ["--input", "%s=@%s/made.safetensors#%s" % (key, folder.path, name)]
    want = n16.sent(folder, n16.chunk(plain, *asked), n16.STATE_VALUE)
    check(got.shape == want.shape == (n16.HORIZON, 7), got.shape, want.shape)
    away = abs(got - want).max()
    check(away < 1e-5, away, got[0].tolist(), want[0].tolist())
    check(numpy.ptp(got, axis=0).max() > 1e-3, got.tolist())
    return got


@test
def relative_actions_and_statistics_by_row():
    agree()


@test
def percentiles_sines_means_and_no_clipping():
    def edit(f):
        f.own.update(use_percentiles=True, clip_outliers=False, apply_sincos_state_encoding=True)
        f.own["modality_configs"][TAG]["state"].update(sin_cos_embedding_keys=["wrist"], mean_std_embedding_keys=["hand"])
    agree(edit)


@test
def absolute_actions_and_text_as_it_is():
    agree(lambda f: f.own.update(use_relative_action=False, formalize_language=False), said="Pick up the Cup_2, please!")


def refused(words, edit):
    folder = Folder(edit)
    code, out, err = n16.call("init", folder.path, "--embodiment", TAG)
    check(code != 0 and words in err and "processor_config.json:" in err, words, err)


@test
def what_would_be_computed_otherwise_is_refused():
    def own(**fields):
        return lambda f: f.own.update(fields)
    refused("use_albumentations: must be true", own(use_albumentations=False))
    refused("letter_box_transform: must be true", own(letter_box_transform=False))
    refused("letter_box_transform: must be true", lambda f: f.own.pop("letter_box_transform"))
    refused("shortest_image_edge: pictures of 224 x 224 are not run", own(shortest_image_edge=224))
    refused("use_tactile: is not supported", own(use_tactile=True))
    refused("exclude_state: is not supported", own(exclude_state=True))
    refused("exclude_state: is not supported", lambda f: f.own["modality_configs"][TAG]["state"].update(exclude_state=True))
    refused("tactile_embed_dim: is no option", own(tactile_embed_dim=32))
    refused("model_type: must be qwen, is eagle", own(model_type="eagle"))
    refused("max_state_dim: is 29, but that of config.json is 21", own(max_state_dim=29))


@test
def its_robot_is_written_and_its_weights_made_up():
    folder = Folder()
    asked = ("--tokenizer", n16.TOKENIZER, "--random-inputs", "1", "--format", "json")
    code, out, err = n16.call("init", folder.path, "--embodiment", TAG)
    check(code == 0 and 'arch = "groot_n17"' in out, err)
    written = folder.path + "/written.lua"
    open(written, "w").write(out)
    made = [n16.call("run", *args, *asked) for args in ((written,), (folder.path, "--embodiment", TAG))]
    check(made[0][0] == made[1][0] == 0, made)
    check(json.loads(made[0][1])["actions"] == json.loads(made[1][1])["actions"], made)
    code, out, err = n16.call("run", folder.path, "--embodiment", TAG, "--random-weights", "1", *asked)
    check(code == 0, err)


if __name__ == "__main__":
    sys.exit(main())
