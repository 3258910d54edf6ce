"""The sliding button: Meta-World's button, pressed from above, on a slide that carries it from side to side while time goes on.

What is seen is a drawing of 28 x 28, not a camera's picture: hand and button as blobs, from above in red and green, from the side in
blue. A model learns to read it in a minute, and how old it is costs what it costs with any picture. An action is a
displacement that the hand's goal goes on with until another one comes; `speed` is the share of Meta-World's full speed (80 cm/s
along an axis) that the robot makes of an action of 1.
"""
from sim import STEP_MS, Sim

import numpy as np

SIZE = 28                       # pixels of a side of the drawing
BLOB = 2.0                      # pixels: the deviation of a blob
SHOWN = np.array([[-0.35, 0.40, 0.0], [0.35, 1.0, 0.5]])    # metres, along x, y and z
REACH = 0.15                    # metres that the slide goes to either side


def pixels(place):
    """x, y, z in metres -> in pixels of the drawing"""
    return (np.asarray(place) - SHOWN[0]) / (SHOWN[1] - SHOWN[0]) * (SIZE - 1)


def blob(row, column):
    """f64 [28,28] of 0..1"""
    near = lambda at: np.exp(-0.5 * ((np.arange(SIZE) - at) / BLOB) ** 2)
    return np.outer(near(row), near(column))


def drawing(hand, button):
    """Places in metres -> u8 [28,28,3]"""
    hand, button = pixels(hand), pixels(button)
    side = blob(hand[2], hand[1]) + 0.5 * blob(button[2], button[1])
    views = [blob(hand[1], hand[0]), blob(button[1], button[0]), side / 1.5]
    return np.round(255 * np.stack(views, -1)).astype(np.uint8)


class Slide(Sim):
    """`step` takes one control step of 12.5 ms. The seed places the button and says which way it sets out."""

    def __init__(self):
        super().__init__("button")
        self.env.max_path_length = 10 ** 9                  # a slow robot needs longer than Meta-World gives
        self.box = self.env.model.body("box").id

    def reset(self, seed, slide=0.0, speed=1.0):
        """`slide`: metres a second of the button."""
        super().reset(seed)
        self.slide = slide * np.random.default_rng([seed, 3]).choice([-1.0, 1.0])
        self.speed = speed
        return self.obs

    def step(self, action):
        """action: 4 numbers in -1..1: the hand's displacement, the gripper. Returns whether the button is pressed."""
        place = self.env.model.body_pos[self.box]
        if abs(place[0] + self.slide * STEP_MS / 1e3) > REACH:
            self.slide = -self.slide
        place[0] += self.slide * STEP_MS / 1e3
        action = np.clip(np.asarray(action, np.float32), -1, 1)
        return super().step(np.append(self.speed * action[:3], action[3]))

    def observe(self):
        return {"observation/image": drawing(self.obs[:3], self.obs[4:7]), "prompt": self.task.instruction}
