"""overhead.py - what the policy "tectum" adds to the time of its server, by parts.

usage: python3 tests/lerobot_plugin/overhead.py PORT [N]    with integrations/lerobot/src in PYTHONPATH,
against `tectum serve pipelines/demo_metaworld.lua --threads 1 --late-ok --port PORT`
"""

import json
import sys
import time

import numpy as np
import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.utils import prepare_observation_for_inference
from lerobot_policy_tectum import TectumConfig, TectumPolicy, make_tectum_pre_post_processors

CAMERAS = ("observation.images.front", "observation.images.wrist")


def main(port, n):
    torch.set_num_threads(1)
    features = {name: PolicyFeature(FeatureType.VISUAL, (3, 64, 64)) for name in CAMERAS}
    features["observation.state"] = PolicyFeature(FeatureType.STATE, (4,))
    names = dict(zip(features, ("observation/image", "observation/wrist_image", "observation/state")))
    policy = TectumPolicy(TectumConfig(
        url="ws://127.0.0.1:" + port, names=names, input_features=features, device="cpu",
        output_features={"action": PolicyFeature(FeatureType.ACTION, (4,))}))
    before, _ = make_tectum_pre_post_processors(policy.config)
    served, ask = [], policy._client.infer

    def timed(request):
        begin = time.perf_counter()
        reply = ask(request)
        served.append((1e3 * (time.perf_counter() - begin), reply["server_timing"]["infer_ms"]))
        return reply

    policy._client.infer = timed
    rng, whole = np.random.default_rng(1), []
    for _ in range(n + 20):
        frame = {name: rng.integers(0, 256, (64, 64, 3), np.uint8) for name in CAMERAS}
        frame["observation.state"] = rng.random(4, np.float32)
        batch = before(prepare_observation_for_inference(frame, torch.device("cpu"), "press the button"))
        begin = time.perf_counter()
        policy.predict_action_chunk(batch)
        whole.append(1e3 * (time.perf_counter() - begin))
    whole, (asked, infer) = np.array(whole[20:]), np.array(served[20:]).T
    for what, x in (("predict_action_chunk", whole), ("server's infer_ms", infer), ("both differ by", whole - infer),
                    ("of it the request's way", asked - infer), ("of it the policy", whole - asked)):
        p50, p99 = np.quantile(x, (0.5, 0.99))
        print("%-24s p50 %6.3f ms  p99 %6.3f ms  max %6.3f ms" % (what, p50, p99, x.max()))
    print(json.dumps(policy.sources))


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000)
