"""still_arm - a LeRobot robot without hardware: it sees one observation, and writes what it is told to do."""

import json
from dataclasses import dataclass

import numpy as np
from lerobot.robots import Robot, RobotConfig

JOINTS = ("x.pos", "y.pos", "z.pos", "gripper.pos")


@RobotConfig.register_subclass("still_arm")
@dataclass
class StillArmConfig(RobotConfig):
    log: str = ""


class StillArm(Robot):
    config_class = StillArmConfig
    name = "still_arm"

    def __init__(self, config):
        super().__init__(config)
        self.config, self.here, self.cameras = config, False, {}

    @property
    def observation_features(self):
        return dict.fromkeys(JOINTS, float) | {"front": (64, 64, 3), "wrist": (64, 64, 3)}

    @property
    def action_features(self):
        return dict.fromkeys(JOINTS, float)

    @property
    def is_connected(self):
        return self.here

    @property
    def is_calibrated(self):
        return True

    def connect(self, calibrate=True):
        self.here = True

    def calibrate(self):
        pass

    def configure(self):
        pass

    def get_observation(self):
        picture = np.full((64, 64, 3), 90, np.uint8)
        return dict(zip(JOINTS, (0.0, 0.6, 0.2, 1.0))) | {"front": picture, "wrist": picture}

    def send_action(self, action):
        with open(self.config.log, "a") as f:
            f.write(json.dumps({name: float(x) for name, x in action.items()}) + "\n")
        return action

    def disconnect(self):
        self.here = False
