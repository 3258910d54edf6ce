"""The robot: five Meta-World tasks behind the observation keys of openpi's LIBERO client.

Two users: record.py (scripted experts) and rollout.py (a policy in closed loop). Rendering is MuJoCo's own, off screen,
with Mesa's software EGL. Control runs at 80 Hz: one step is five physics steps of 2.5 ms.
"""
import os
from dataclasses import dataclass

os.environ.setdefault("MUJOCO_GL", "egl")

import mujoco
import numpy as np
from metaworld.env_dict import ALL_V3_ENVIRONMENTS_GOAL_OBSERVABLE as ENVIRONMENTS
from metaworld.policies import ENV_POLICY_MAP as EXPERTS

HZ = 80
STEP_MS = 1000.0 / HZ
SIZE = 64                       # pixels of a side of both views, if no other is asked for
STATE_DIM = 4                   # hand x y z in metres, opening of the gripper in 0..1
DRAWER_JOINT = 9                # index in qpos; metres, 0 is shut, negative is open
FAUCET_JOINT = 9                # index in qpos; radians, positive is open


@dataclass(frozen=True)
class Task:
    """One task: Meta-World's environment, the instruction, and the two sentences the robot says while it works."""
    environment: str
    instruction: str
    approach: str
    act: str
    contact: float              # metres between hand and object (in the plane for the button) where `act` begins


TASKS = {
    "button": Task("button-press-topdown-v3", "press the button", "move above the button", "press it down", 0.06),
    "drawer_open": Task("drawer-open-v3", "open the drawer", "move to the drawer handle", "pull the handle", 0.07),
    "drawer_close": Task("drawer-close-v3", "close the drawer", "move to the drawer", "push it shut", 0.07),
    "faucet_open": Task("faucet-open-v3", "open the faucet", "move to the faucet", "turn it open", 0.07),
    "faucet_close": Task("faucet-close-v3", "close the faucet", "move to the faucet", "turn it closed", 0.07),
}
OPPOSITE = {"drawer_open": "drawer_close", "drawer_close": "drawer_open",
            "faucet_open": "faucet_close", "faucet_close": "faucet_open"}


class Sim:
    """One task with a corner view (where LeRobot places it) and a wrist view."""

    def __init__(self, name, size=SIZE):
        self.name, self.task = name, TASKS[name]
        self.env = ENVIRONMENTS[self.task.environment + "-goal-observable"](seed=0)
        self.env._freeze_rand_vec = False
        self.env.seeded_rand_vec = True         # else positions come from numpy's global generator, whatever the seed
        self.env.reset()
        model = self.env.model
        model.cam_pos[model.camera("corner2").id] = [0.75, 0.075, 0.7]
        model.vis.quality.offsamples = 0        # antialiasing and shadows cost six times as much in software
        model.vis.quality.shadowsize = 64
        self.renderer = mujoco.Renderer(model, size, size)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self.renderer.scene.flags[flag] = 0
        self.view = mujoco.MjvOption()
        self.view.sitegroup[:] = 0              # goal markers would tell the task without the language

    def reset(self, seed, opening=None):
        """Places objects by the seed. `opening`: metres that a drawer starts open, instead of the task's own start."""
        self.env.seed(seed)
        self.obs, _ = self.env.reset()
        if opening is not None:
            position, velocity = self.env.data.qpos.flat.copy(), self.env.data.qvel.flat.copy()
            position[DRAWER_JOINT] = -opening
            self.env.set_state(position, velocity)
            self.obs = self.env._get_obs()
        self.expert = EXPERTS[self.task.environment]()
        self.steps, self.success = 0, False
        self.start = self.joint()
        return self.obs

    def close(self):
        self.renderer.close()

    def step(self, action):
        """One control step. Returns whether the task is done."""
        self.obs, _, _, _, info = self.env.step(np.clip(np.asarray(action, np.float32), -1, 1))
        self.steps += 1
        self.success = bool(info["success"])
        return self.success

    def joint(self):
        """The joint of the drawer (metres) or the faucet (radians)."""
        return float(self.env.data.qpos.flat[DRAWER_JOINT])

    def expert_action(self):
        return np.clip(self.expert.get_action(self.obs), -1, 1).astype(np.float32)

    def render(self, camera):
        self.renderer.update_scene(self.env.data, camera, self.view)
        return self.renderer.render()

    def observe(self):
        """What the robot sends: two views u8 [size,size,3], state f32 [4], the instruction."""
        return {
            "observation/image": self.render("corner2")[::-1, ::-1].copy(),     # that camera hangs upside down
            "observation/wrist_image": self.render("gripperPOV").copy(),
            "observation/state": self.obs[:STATE_DIM].astype(np.float32),
            "prompt": self.task.instruction,
        }

    def sentence(self):
        """What the expert is doing now."""
        return self.task.act if self.touching() else self.task.approach

    def touching(self):
        hand, thing = self.obs[:3], self.obs[4:7]
        if self.name == "button":
            hand, thing = hand[:2], thing[:2]
        return np.linalg.norm(hand - thing) < self.task.contact
