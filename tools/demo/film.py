"""A film of one episode: an animated GIF, and a strip of four moments as a PNG. For `watch` of episode.run."""
import itertools
import pathlib
from dataclasses import dataclass, field

import mujoco
import numpy as np
from PIL import Image

import film_draw
from sim import STEP_MS

EVERY = 2                       # control steps between frames
SPEED = 0.5
HOLD_MS = 2000                  # the last frame
RENDER = 480                    # pixels of a side; the model's frame buffer is not higher
SMALL = 144


@dataclass
class Sight:
    """An observation: both views as the model got them, and the sentence that came back."""
    step: int
    views: list
    text: str


@dataclass
class Use:
    """A chunk: `actions[0]` belongs to step `begin`, the first one executed to step `start`."""
    start: int
    begin: int
    actions: np.ndarray


@dataclass
class Shot:
    """What one frame shows."""
    step: int
    corner: Image.Image
    wrist: Image.Image
    seen: list
    use: Use


@dataclass
class Story:
    """The whole episode."""
    rules: object
    instruction: str = ""
    sights: list = field(default_factory=list)
    uses: list = field(default_factory=list)
    steps: int = 0
    success: bool = False

    @property
    def spoken(self):
        """(step, sentence) where it changed; a sentence comes with its actions."""
        order = []
        for sight in self.sights:
            start = sight.step + self.rules.age
            if start < self.steps and (not order or order[-1][1] != sight.text):
                order.append((start, sight.text))
        return order

    def sentence(self, step):
        return next((text for start, text in reversed(self.spoken) if start <= step), "")


class Film:
    """Called at each inference, `stepped` before each control step, `write` at the end, while the simulator stands there."""

    def __init__(self, sim, rules):
        self.sim, self.story, self.shots, self.current = sim, Story(rules), [], None
        self.large, self.small = (renderer(sim, side) for side in (RENDER, SMALL))

    def __call__(self, step, obs, reply):
        views = [Image.fromarray(obs[key]) for key in ("observation/image", "observation/wrist_image")]
        self.story.instruction = obs["prompt"]
        self.story.sights.append(Sight(step, views, reply.get("tectum", {}).get("text", "")))

    def stepped(self, step, sim, chunks):
        if chunks.current is not self.current:
            self.current = chunks.current
            self.story.uses.append(Use(step, self.current[0], np.asarray(self.current[1])))
        if step % EVERY == 0:
            self.shoot(step)

    def shoot(self, step):
        """A frame of now."""
        corner = Image.fromarray(self.render(self.large, "corner2")[::-1, ::-1])
        wrist = Image.fromarray(self.render(self.small, "gripperPOV"))
        use = self.story.uses[-1] if self.story.uses else None
        self.shots.append(Shot(step, corner, wrist, self.story.sights[-1].views, use))

    def render(self, large, camera):
        large.update_scene(self.sim.env.data, camera, self.sim.view)
        return large.render()

    def write(self, path, result):
        """Writes the GIF at `path`, and the strip beside it as .png."""
        self.story.steps, self.story.success = result.steps, result.success
        self.shoot(result.steps)
        self.large.close()
        self.small.close()
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        frames = [film_draw.frame(self.story, shot) for shot in self.shots]
        save_gif(path, frames, round(EVERY * STEP_MS / SPEED))
        self.strip(pathlib.Path(path).with_suffix(".png"))

    def strip(self, path):
        """Writes four moments as one picture."""
        picture = film_draw.strip(self.story, [self.nearest(step) for step in self.moments()])
        picture.quantize(palette=palette([picture]), dither=Image.Dither.NONE).save(path, optimize=True)

    def moments(self):
        """The start, on the way, where the last sentence begins, the end; else evenly spread."""
        last, turn = self.story.steps, ([0] + [start for start, _ in self.story.spoken])[-1]
        if not last / 4 <= turn <= last * 0.9:
            return [0, last / 3, last * 2 / 3, last]
        return [0, turn / 2, turn, last]

    def nearest(self, step):
        return min(self.shots, key=lambda shot: abs(shot.step - step))


def renderer(sim, side):
    """Beside the simulator's own, for larger pictures."""
    new = mujoco.Renderer(sim.env.model, side, side)
    for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
        new.scene.flags[flag] = 0
    return new


def palette(frames):
    """255 colours (GIF needs one for "as before"): ramps of the drawing's colours, the others from the pictures."""
    shares = (1.0, 0.75, 0.5, 0.25)
    ramps = (film_draw.mix(colour, share) for colour, share in itertools.product(film_draw.COLOURS, shares))
    drawn = dict.fromkeys([film_draw.PAPER, *ramps])
    some = np.concatenate([np.asarray(f) for f in frames[::max(1, len(frames) // 6)]])
    seen = Image.fromarray(some).quantize(255 - len(drawn), kmeans=1, dither=Image.Dither.NONE).getpalette()
    whole = Image.new("P", (1, 1))
    whole.putpalette([c for colour in drawn for c in colour] + seen[:3 * (255 - len(drawn))])
    return whole


def save_gif(path, frames, frame_ms):
    colours = palette(frames)
    pictures = [frame.quantize(palette=colours, dither=Image.Dither.NONE) for frame in frames]
    durations = [frame_ms] * (len(pictures) - 1) + [HOLD_MS]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=durations, loop=0, disposal=1, optimize=True)
