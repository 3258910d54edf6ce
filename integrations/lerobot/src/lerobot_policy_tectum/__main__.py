"""__main__.py - writes the folder that --policy.path names: a robot's features and where its server is.

usage: python -m lerobot_policy_tectum FOLDER --camera NAME=HxW ... --state N --action N [--set FIELD=JSON ...]
"""

import argparse
import json
import pathlib

from lerobot.configs.types import FeatureType, PolicyFeature

from . import TectumConfig, make_tectum_pre_post_processors


def features(cameras, state):
    out = {}
    for camera in cameras:
        name, _, size = camera.partition("=")
        try:
            height, width = (int(x) for x in size.split("x"))
        except ValueError:
            raise SystemExit(f"--camera {camera}: must be NAME=HEIGHTxWIDTH") from None
        out["observation.images." + name] = PolicyFeature(FeatureType.VISUAL, (3, height, width))
    out["observation.state"] = PolicyFeature(FeatureType.STATE, (state,))
    return out


def value(text):
    name, _, said = text.partition("=")
    try:
        return name, json.loads(said)
    except ValueError:
        return name, said  # a text without quotes


def main():
    p = argparse.ArgumentParser(prog="python -m lerobot_policy_tectum")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--camera", action="append", default=[], help="NAME=HEIGHTxWIDTH")
    p.add_argument("--state", type=int, required=True, help="numbers of observation.state")
    p.add_argument("--action", type=int, required=True, help="numbers of an action")
    p.add_argument("--set", action="append", default=[], type=value, help="FIELD=VALUE of the policy")
    a = p.parse_args()
    try:
        config = TectumConfig(input_features=features(a.camera, a.state), device="cpu",
                              output_features={"action": PolicyFeature(FeatureType.ACTION, (a.action,))},
                              **dict(a.set))
        config.validate_features()
    except (TypeError, ValueError) as e:
        raise SystemExit(str(e)) from None
    a.folder.mkdir(parents=True, exist_ok=True)
    config.save_pretrained(a.folder)
    for processor in make_tectum_pre_post_processors(config):
        processor.save_pretrained(a.folder)


if __name__ == "__main__":
    main()
