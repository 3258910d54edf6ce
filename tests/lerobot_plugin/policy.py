"""policy.py - the policy "tectum" inside LeRobot: its batches, its two engines, its own program."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.factory import get_policy_class, make_pre_post_processors
from lerobot.policies.utils import prepare_observation_for_inference
from lerobot.rollout.inference.rtc import supports_rtc_inference
from lerobot_policy_tectum import TectumConfig
from lerobot_policy_tectum.chunks import ActionsUnusable
from lerobot_policy_tectum.protocol import ReplyLost, RequestRefused, ServerUnreachable
from without import (
    BOX,
    DEMO,
    SEEN,
    SLOW,
    Server,
    again,
    check,
    demo_run,
    free_port,
    raises,
    run,
    safetensors,
    test,
)

F4 = np.float32  # LeRobot's actions; the server's are float64

NAMES = {
    "observation.images.front": "observation/image",
    "observation.images.wrist": "observation/wrist_image",
    "observation.state": "observation/state",
}
CASE = "tests/golden/smolvla/base_rtc"


def demo_config(port, names=NAMES, width=4, **fields):
    inputs = {name: PolicyFeature(FeatureType.VISUAL, (3, 64, 64)) for name in names if "image" in name}
    inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (4,))
    return TectumConfig(
        **{
            "url": f"ws://127.0.0.1:{port}",
            "names": names,
            "device": "cpu",
            "seed": 7,
            "input_features": inputs,
            "reply_timeout_s": 20 * SLOW,
            "output_features": {"action": PolicyFeature(FeatureType.ACTION, (width,))},
        }
        | fields
    )


def policy_of(config):
    return get_policy_class("tectum")(config)


def batch(names=NAMES, seen=SEEN, task="press the button"):
    """What LeRobot's engines hand over, through its own function and the policy's processors."""
    frame = {name: seen[its].copy() for name, its in names.items()}
    frame = prepare_observation_for_inference(frame, torch.device("cpu"), task, "arm")
    return make_pre_post_processors(demo_config(1))[0](frame)


@test
def a_chunk_is_that_of_run():
    policy = policy_of(demo_config(Server(DEMO, "--late-ok").port))
    chunk = policy.predict_action_chunk(batch())
    check(chunk.shape == (1, 16, 4) and chunk.dtype == torch.float32, chunk.shape)
    check(chunk[0].numpy().tobytes() == demo_run().astype(F4).tobytes())
    check(make_pre_post_processors(policy.config)[1](chunk).numpy().tobytes() == chunk.numpy().tobytes())
    check(dict(policy.sources) == {"fresh": 1}, policy.sources)


@test
def single_actions_come_from_a_queue():
    policy = policy_of(demo_config(Server(DEMO, "--late-ok").port, n_action_steps=3))
    rows, want = [], demo_run().astype(F4)
    for _ in range(7):
        rows.append(policy.select_action(batch()))
    check(all(row.shape == (1, 4) for row in rows) and sum(policy.sources.values()) == 3, policy.sources)
    got = np.concatenate([row.numpy() for row in rows])
    check(got.tobytes() == np.concatenate([want[:3], want[:3], want[:1]]).tobytes())
    policy.reset()
    policy.select_action(batch(task="open the drawer"))
    check(sum(policy.sources.values()) == 4, "after a reset nothing of the old episode is carried out")


@test
def the_server_goes_and_comes_back():
    server = Server(DEMO, "--late-ok")
    policy = policy_of(demo_config(server.port, n_action_steps=1, connect_timeout_s=1))
    policy.select_action(batch())
    server.end(signal.SIGKILL)
    raises(ReplyLost, "", policy.select_action, batch())
    raises(ServerUnreachable, "no server within 1 s", policy.select_action, batch())
    again(server, "--late-ok")
    check(policy.select_action(batch())[0].numpy().tobytes() == demo_run()[0].astype(F4).tobytes())


@test
def a_substitute_is_seen():
    server = Server(DEMO)
    config = demo_config(server.port, deadline_ms=0.001)
    policy = policy_of(config)
    raises(ActionsUnusable, "", policy.predict_action_chunk, batch())
    check(policy.sources["fresh"] == 0 and sum(policy.sources.values()) == 1, policy.sources)


@test
def wrong_configurations():
    port = Server(DEMO, "--late-ok").port
    for words, fields in (
        ("url is 'http://x'", {"url": "http://x"}),
        ("n_action_steps is 0", {"n_action_steps": 0}),
        ("on_substitute is 'hold'", {"on_substitute": "hold"}),
        ("deadline_ms is -1", {"deadline_ms": -1}),
        ("two features for one input", {"names": {"a": "x", "b": "x"}}),
    ):
        raises(ValueError, words, demo_config, port, **fields)
    raises(
        ValueError,
        "'observation.depth', which is no input feature",
        lambda: policy_of(demo_config(port, names=NAMES | {"observation.depth": "d"})),
    )
    raises(ValueError, "key_file", lambda: policy_of(demo_config(port, key_file="/nothing/there")))
    raises(
        ServerUnreachable,
        "start `tectum serve`",
        lambda: policy_of(demo_config(free_port(), connect_timeout_s=0.2)),
    )
    raises(
        ActionsUnusable,
        "4 columns, the robot's 7",
        policy_of(demo_config(port, width=7)).predict_action_chunk,
        batch(),
    )
    few = {name: its for name, its in NAMES.items() if "wrist" not in name}
    raises(
        RequestRefused,
        "observation/wrist_image",
        policy_of(demo_config(port, names=few)).predict_action_chunk,
        batch(),
    )
    two = {name: torch.cat([x, x]) if isinstance(x, torch.Tensor) else x for name, x in batch().items()}
    raises(ValueError, "2 observations in a batch", policy_of(demo_config(port)).predict_action_chunk, two)


def tensor_of(path, name):
    sys.path.append("tests")
    from smolvla_pipeline import tensor

    sys.path.remove("tests")
    shape, data = tensor(path, name)
    return np.frombuffer(data, np.uint8 if "image" in name else np.float32).reshape(shape)


@test
def guided_chunks_are_those_of_run():
    folder, seen = os.path.join(BOX, "arm"), os.path.join(BOX, "guided.safetensors")
    shutil.copytree("tests/golden/smolvla/base/checkpoint", folder, dirs_exist_ok=True)
    folder += "/pretrained_model"
    os.system("chmod -R u+w " + folder)
    subprocess.run([sys.executable, "tests/guided.py", "folder", folder, CASE], check=True)
    cameras = ("observation.images.top", "observation.images.wrist")
    tensors = {name: tensor_of(CASE + "/inputs.safetensors", "image." + name) for name in cameras}
    tensors["observation.state"] = tensor_of(CASE + "/inputs.safetensors", "observation.state")
    features = {name: PolicyFeature(FeatureType.VISUAL, (3, *tensors[name].shape[:2])) for name in cameras}
    features["observation.state"] = PolicyFeature(FeatureType.STATE, (6,))
    server = Server(folder, "--late-ok", "--device", "cpu")
    policy = policy_of(demo_config(server.port, {}, 6, guided=True, task_input="task", input_features=features))
    check(supports_rtc_inference(policy) and not supports_rtc_inference(policy_of(demo_config(server.port))))
    asked = batch({name: name for name in tensors}, tensors, "lift it")
    first = policy.predict_action_chunk(asked, inference_delay=0, prev_chunk_left_over=None)
    left = np.zeros((10, 6), np.float32)
    left[:4] = first[0, 6:10]  # six rows are carried out; LeRobot fills up with zeros
    second = policy.predict_action_chunk(asked, inference_delay=2, prev_chunk_left_over=torch.from_numpy(left))
    safetensors(seen, tensors | {"prev_chunk_left_over": left[:4], "inference_delay": np.array([2], np.float32)})
    options = ["--device", "cpu", "--seed", "7", "-i", "task=lift it"]
    options += [x for name in tensors for x in ("-i", f"{name}=@{seen}#{name}")]
    check(first[0].numpy().tobytes() == run(folder, *options).astype(F4).tobytes(), "the free chunk")
    options += [x for name in ("prev_chunk_left_over", "inference_delay") for x in ("-i", f"{name}=@{seen}#{name}")]
    check(second[0].numpy().tobytes() == run(folder, *options).astype(F4).tobytes(), "the guided chunk")
    check(not np.array_equal(first, second))
    policy.reset()
    check(
        torch.equal(
            policy.predict_action_chunk(asked, inference_delay=2, prev_chunk_left_over=torch.zeros(10, 6)), first
        )
    )


@test
def lerobot_rollout_drives_a_robot():
    if not shutil.which("lerobot-rollout", path=os.path.dirname(sys.executable)):
        return "no lerobot-rollout beside this python"
    folder = os.path.join(BOX, "policy")
    port = Server(DEMO, "--late-ok").port
    sets = [
        "url=ws://127.0.0.1:%d" % port,
        "n_action_steps=8",
        "chunk_size=16",
        "names=" + __import__("json").dumps(NAMES),
    ]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "lerobot_policy_tectum",
            folder,
            "--camera",
            "front=64x64",
            "--camera",
            "wrist=64x64",
            "--state",
            "4",
            "--action",
            "4",
            *(x for s in sets for x in ("--set", s)),
        ],
        check=True,
    )
    log = os.path.join(BOX, "actions")
    for engine in (
        ["--inference.type=sync"],
        ["--inference.type=rtc", "--policy.guided=true", "--inference.queue_threshold=8"],
    ):
        done = subprocess.run(
            [
                os.path.join(os.path.dirname(sys.executable), "lerobot-rollout"),
                "--policy.path=" + folder,
                "--robot.type=still_arm",
                "--robot.discover_packages_path=still_arm",
                "--robot.log=" + log,
                "--task=press the button",
                "--duration=3",
                "--fps=20",
                "--device=cpu",
                "--return_to_initial_position=false",
                *engine,
            ],
            env={**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"] + ":tests/lerobot_plugin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100 * SLOW,
        )
        rows = open(log).read().splitlines() if os.path.exists(log) else []
        check(done.returncode == 0 and len(rows) >= 20, done.returncode, len(rows), done.stdout[-3000:])
        check(len(set(rows)) > 8, "the actions are a model's")
        os.remove(log)
