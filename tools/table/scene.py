"""The table: a drawer, a button and a faucet in one scene, two views, seeded places, disturbances, and what counts as done.

Control runs at 80 Hz: one step is five physics steps of 2.5 ms. An action moves the hand's goal by up to a centimetre along
each axis and opens or closes the gripper, as Meta-World's do; the goal stays within LEASH of the hand, so that a hand that is
held up answers at once when it is told to turn round.
"""
import os
import pathlib
import tempfile

os.environ.setdefault("MUJOCO_GL", "egl")

import metaworld
import mujoco
import numpy as np

HZ = 80
STEP_MS = 1000.0 / HZ
SUBSTEPS = 5
SIZE = 64                       # pixels of a side of both views, if no other is asked for
STATE_DIM = 4                   # hand x y z in metres, opening of the gripper in 0..1
REACH = np.array([[-0.5, 0.40, 0.06], [0.5, 1.0, 0.5]])        # metres, of the hand's goal
LEASH = 0.05                    # metres between the hand and its goal, at most
HOME = np.array([0.0, 0.55, 0.30])
PLACES = {                      # body -> its place, and how far from it the seed may put it (metres, x and y)
    "drawer": ((0.31, 0.87), (0.05, 0.03)),
    "box": ((0.0, 0.82), (0.04, 0.02)),
    "faucet": ((-0.31, 0.65), (0.05, 0.03))}
BODY = {"drawer": "drawer", "button": "box", "faucet": "faucet"}
JOINT = {"drawer": "goal_slidey", "button": "btnbox_joint", "faucet": "knob_Joint_1"}
STARTS = {                      # thing -> state -> range of its joint (metres, radians)
    "drawer": {"open": (-0.155, -0.135), "closed": (-0.01, 0.0), "between": (-0.10, -0.05)},
    "faucet": {"open": (1.0, 1.2), "closed": (-1.2, -1.0), "between": (-0.5, 0.5)}}
PRESSED = -0.04                 # metres of the button's joint
HIDDEN = ("pedestal", "base", "head", "l0", "l1", "l2", "l3")   # meshes that no view needs: they are most of the triangles


def package():
    """The folder of Meta-World's assets."""
    return pathlib.Path(metaworld.__file__).resolve().parent / "assets"


def load():
    """The model, read as if it lay in Meta-World's package: its files name each other by relative paths."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for entry in package().iterdir():
            (root / entry.name).symlink_to(entry)
        (root / "table").mkdir()
        text = (pathlib.Path(__file__).resolve().parent / "table.xml").read_text()
        (root / "table/table.xml").write_text(text)
        return mujoco.MjModel.from_xml_path(str(root / "table/table.xml"))


class Table:
    """One scene that is set anew by a seed."""

    def __init__(self, size=SIZE):
        self.model = load()
        self.data = mujoco.MjData(self.model)
        self.size, self.renderer = size, None
        weld = self.model.eq_type == mujoco.mjtEq.mjEQ_WELD
        self.model.eq_data[weld] = [0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 5]       # the hand hangs from its goal, pointing down
        self.joints = {thing: self.model.joint(name).qposadr[0] for thing, name in JOINT.items()}
        self.speeds = {thing: self.model.joint(name).dofadr[0] for thing, name in JOINT.items()}
        for geom in range(self.model.ngeom):
            mesh = self.model.geom_dataid[geom]
            if mesh >= 0 and self.model.mesh(mesh).name in HIDDEN:
                self.model.geom_rgba[geom, 3] = 0
                self.model.geom_matid[geom] = -1
        self.model.vis.quality.offsamples = 0       # antialiasing and shadows cost six times as much in software
        self.model.vis.quality.shadowsize = 64
        self.settle()

    def settle(self):
        """The arm at rest with the hand at HOME: every episode starts from it."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.mocap_pos[0], self.data.mocap_quat[0] = HOME, [1, 0, 1, 0]
        for _ in range(150):
            self.data.ctrl[:] = [-1, 1]
            mujoco.mj_step(self.model, self.data, SUBSTEPS)
        self.rest = self.data.qpos.copy(), self.data.qvel.copy() * 0

    def reset(self, seed, drawer=None, faucet=None):
        """Places things by the seed; `drawer` and `faucet`: a state of STARTS, drawn if there is none."""
        self.rng = np.random.default_rng([seed, 7])
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.rest
        self.data.mocap_pos[0], self.data.mocap_quat[0] = HOME, [1, 0, 1, 0]
        for body, (place, reach) in PLACES.items():
            self.model.body(body).pos[:2] = np.array(place) + self.rng.uniform(-1, 1, 2) * reach
        for thing, state in (("drawer", drawer), ("faucet", faucet)):
            self.put(thing, state or ("open", "closed")[self.rng.integers(2)])
        self.steps, self.pushed, self.moved = 0, None, None
        for _ in range(10):
            self.data.ctrl[:] = [-1, 1]
            mujoco.mj_step(self.model, self.data, SUBSTEPS)
        return self

    def put(self, thing, state):
        """Somebody opens or closes a thing: its joint is where that state is."""
        self.data.qpos[self.joints[thing]] = self.rng.uniform(*STARTS[thing][state])
        self.data.qvel[self.speeds[thing]] = 0
        mujoco.mj_forward(self.model, self.data)

    def close(self):
        if self.renderer:
            self.renderer.close()

    # disturbances

    def push(self, steps=8):
        """Somebody pushes the hand aside, for so many steps."""
        angle = self.rng.uniform(0, 2 * np.pi)
        self.pushed = [steps, np.array([np.cos(angle), np.sin(angle), self.rng.uniform(-0.3, 0.6)])]

    def move(self, thing, steps=40):
        """Somebody moves a thing to another of its places, in so many steps."""
        place, reach = PLACES[BODY[thing]]
        goal = np.array(place) + self.rng.uniform(-1, 1, 2) * reach
        body = self.model.body(BODY[thing])
        self.moved = [steps, body, (goal - body.pos[:2]) / steps]

    def disturbed(self, action):
        """The action as it is after what somebody does in this step."""
        if self.moved:
            self.moved[1].pos[:2] += self.moved[2]
            self.moved[0] -= 1
            self.moved = self.moved if self.moved[0] else None
        if self.pushed:
            action = np.concatenate([self.pushed[1], action[3:]])
            self.pushed[0] -= 1
            self.pushed = self.pushed if self.pushed[0] else None
        return action

    def step(self, action):
        """One control step: change of the hand's place 3, gripper 1 (closes above 0), each within +-1."""
        action = self.disturbed(np.clip(np.asarray(action, np.float64), -1, 1))
        goal = self.data.mocap_pos[0] + action[:3] * 0.01
        goal = self.hand() + np.clip(goal - self.hand(), -LEASH, LEASH)
        self.data.mocap_pos[0] = np.clip(goal, *REACH)
        self.data.mocap_quat[0] = [1, 0, 1, 0]
        self.data.ctrl[:] = [action[3], -action[3]]
        mujoco.mj_step(self.model, self.data, SUBSTEPS)
        mujoco.mj_forward(self.model, self.data)
        self.steps += 1

    # what is where

    def hand(self):
        return self.data.body("hand").xpos.copy()

    def joint(self, thing):
        return float(self.data.qpos[self.joints[thing]])

    def is_state(self, thing, state):
        """Whether the drawer or the faucet is `open` or `closed`; the button `down`."""
        if thing == "button":
            return self.joint("button") <= PRESSED
        if thing == "drawer":
            return self.joint("drawer") <= -0.12 if state == "open" else self.joint("drawer") >= -0.03
        return self.joint("faucet") >= 0.9 if state == "open" else self.joint("faucet") <= -0.9

    def state_of(self, thing):
        return next((s for s in ("open", "closed") if self.is_state(thing, s)), "between")

    # what the robot sends

    def state(self):
        gripper = np.linalg.norm(self.data.body("rightclaw").xpos - self.data.body("leftclaw").xpos) / 0.1
        return np.append(self.hand(), min(gripper, 1.0)).astype(np.float32)

    def render(self, camera):
        if not self.renderer:
            self.renderer = mujoco.Renderer(self.model, self.size, self.size)
            for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
                self.renderer.scene.flags[flag] = 0
            self.view = mujoco.MjvOption()
            self.view.sitegroup[:] = 0
        self.renderer.update_scene(self.data, camera, self.view)
        return self.renderer.render().copy()

    def observe(self, prompt):
        """Two views u8 [size,size,3], state f32 [4], what the robot is told."""
        return {"observation/image": self.render("side"), "observation/wrist_image": self.render("gripperPOV"),
                "observation/state": self.state(), "prompt": prompt}
