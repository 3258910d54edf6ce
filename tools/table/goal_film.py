"""A film of one goal: the scene, what the arm sees, what planner and arm say, the memory, and all of it over time.

loop.py --film FOLDER writes KIND-SEED.gif, and as .png four moments above the whole timeline.
"""
import copy
import pathlib
from dataclasses import dataclass, field

import mujoco
import numpy as np
from PIL import Image

import film_draw
import goals
from film import palette, save_gif
from film_draw import CARD, DONE, FAILED, INK, LINE, MARK, MUTED, PAPER, ROBOT, SAYS, Page
from scene import STEP_MS

WIDTH, HEIGHT = 900, 484
RENDER = 480
CAMERA = "corner3"
FRAME_MS = 110                  # of an observation, which is a tenth of a second
VIEW, SMALL = 240, 116
LEFT, RIGHT = 82, 884           # of the timeline
PLANS, DID = ((196, 219, 229), (214, 230, 236)), ((238, 222, 190), (243, 232, 210))
KEYS = ("seen", "said", "found drawer", "found faucet", "did")


@dataclass
class Shot:
    """What is known when an observation has been answered."""
    step: int
    scene: Image.Image
    views: list
    goal: str
    memory: dict


@dataclass
class Story:
    shots: list = field(default_factory=list)
    lanes: dict = field(default_factory=lambda: {"plan": [], "seen": [], "report": []})     # (step, text) where it changed
    events: list = field(default_factory=list)                                              # (step, what somebody did)
    right: bool = False

    @property
    def steps(self):
        return max(1, self.shots[-1].step)

    def heard(self, step, lane, text):
        if not self.lanes[lane] or self.lanes[lane][-1][1] != text:
            self.lanes[lane].append((step, text))

    def said(self, lane, step):
        return next((text for begin, text in reversed(self.lanes[lane]) if begin <= step), "")


class Film:
    """Called by loop.Robot with each observation; `told` with what is put into the memory."""

    def __init__(self, table):
        self.table, self.story, self.memory = table, Story(), {}
        self.large = mujoco.Renderer(table.model, RENDER, RENDER)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self.large.scene.flags[flag] = 0

    def told(self, put):
        self.memory.update({key: text.strip() for key, text in put.items()})

    def heard(self, step, stream, text):
        """A finished text: the pipeline remembers it."""
        self.memory[{"plan": "said", "report": "did", "seen": "seen"}[stream]] = text
        self.story.heard(step, stream, text)

    def happened(self, step, what):
        self.story.events.append((step, what))

    def __call__(self, step, obs):
        self.large.update_scene(self.table.data, CAMERA, self.table.view)
        scene = Image.fromarray(self.large.render()[::-1, ::-1])
        views = [Image.fromarray(obs[key]) for key in ("observation/image", "observation/wrist_image")]
        self.story.shots.append(Shot(step, scene, views, obs["goal"], copy.copy(self.memory)))

    def write(self, path, right):
        """Writes the GIF at `path` and the picture beside it."""
        self.large.close()
        self.story.right = right
        frames = [frame(self.story, shot) for shot in self.story.shots]
        save_gif(path, frames, FRAME_MS)
        still = picture(self.story)
        still.quantize(palette=palette([still]), dither=Image.Dither.NONE).save(pathlib.Path(path).with_suffix(".png"), optimize=True)


def wrapped(page, text, size, room):
    """Lines of at most that width."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], longer] if page.width(longer, size) <= room else [*lines, word]
    return lines


def frame(story, shot):
    page = Page(WIDTH, HEIGHT)
    page.paste(shot.scene, 16, 16, VIEW)
    for i, view in enumerate(shot.views):
        page.paste(view, 264, 16 + i * (VIEW - SMALL), SMALL, smooth=False)
    page.text(16, 272, "the table", 11, MUTED)
    page.text(264, 272, "what the arm sees", 11, MUTED)
    words(page, story, shot)
    memory(page, shot)
    timeline(page, story, shot.step, 296)
    return page.finish()


def words(page, story, shot):
    y = 30
    for who, text, colour in (("you", shot.goal, INK), ("planner", story.said("plan", shot.step), ROBOT), ("arm", story.said("seen", shot.step), DONE)):
        page.text(396, y, who, 12, MUTED)
        for line in wrapped(page, f'"{text}"' if text else "...", 16, 420):
            page.text(450, y, line, 16, colour, bold=True)
            y += 20
        y += 8


def memory(page, shot):
    page.box(396, 150, 884, 258, CARD, 5)
    page.text(404, 272, "the memory, kept in a file", 11, MUTED)
    y = 170
    for key in KEYS:
        page.text(406, y, key, 11, MUTED)
        page.fitted(492, y, shot.memory.get(key, ""), 13, 384, INK)
        y += 20


def lane(page, story, name, label, y, colours, now):
    page.text(16, y + 17, label, 11, MUTED)
    last, spoken = story.steps, story.lanes[name]
    for i, (begin, text) in enumerate(spoken):
        if begin > now:
            break
        end = min(now, spoken[i + 1][0] if i + 1 < len(spoken) else last)
        x0, x1 = place(story, begin), place(story, end)
        page.box(x0, y, x1 - 1, y + 24, colours[i % 2], 3)
        page.fitted(x0 + 5, y + 16, text, 11, x1 - x0 - 9)


def place(story, step):
    return LEFT + (RIGHT - LEFT) * step / story.steps


def happenings(page, story, now, top):
    """What somebody did, in two rows where words would lie on each other."""
    free = [0.0, 0.0]
    for step, what in story.events:
        x = place(story, step)
        row = 0 if free[0] <= x or free[0] <= free[1] else 1
        wide = page.width(what, 11) + 10
        left = min(x, RIGHT - wide)
        free[row] = left + wide + 4
        if step <= now:
            colour = FAILED if "kill" in what else MARK
            page.line([(x, top + 18 * row), (x, top + 18 * row + 15)], colour, 2)
            page.text(left + 5, top + 18 * row + 12, what, 11, colour)


def timeline(page, story, now, top):
    """`top`: where it begins; it is 190 high."""
    for i, (name, label, colours) in enumerate((("plan", "planner", PLANS), ("seen", "arm", SAYS), ("report", "remembers", DID))):
        lane(page, story, name, label, top + 30 * i, colours, now)
    page.text(16, top + 107, "somebody", 11, MUTED)
    happenings(page, story, now, top + 92)
    axis = top + 134
    page.line([(LEFT, axis), (RIGHT, axis)], LINE)
    for k in range(int(story.steps * STEP_MS / 1e3) + 1):
        x = place(story, k * 1e3 / STEP_MS)
        page.line([(x, axis), (x, axis + 5)], LINE)
        page.text(x, axis + 19, f"{k} s" if k else "0", 11, MUTED, "ms")
    page.line([(place(story, now), top - 4), (place(story, now), axis)], INK)
    if now >= story.steps:
        page.text(RIGHT, axis + 42, "all done, and things stand as they should" if story.right else "not right", 13,
                  DONE if story.right else FAILED, "rs", bold=True)


def moments(story):
    """Four: where the second, the third, ... skill begins, as evenly as four can, and the end."""
    begins = [begin for begin, text in story.lanes["plan"] if text != goals.IDLE][1:]
    chosen = [begins[round(i * (len(begins) - 1) / 2)] for i in range(3)] if len(begins) >= 3 else list(np.linspace(0, story.steps, 4)[:3])
    return [min(story.shots, key=lambda s: abs(s.step - at)) for at in (*chosen, story.steps)]


def picture(story):
    page, side, gap = Page(WIDTH, 486), 208, 12
    page.text(16, 28, "you", 12, MUTED)
    for i, line in enumerate(wrapped(page, f'"{story.shots[0].goal}"', 16, 820)):
        page.text(46, 28 + 20 * i, line, 16, INK, bold=True)
    for i, shot in enumerate(moments(story)):
        x = 16 + i * (side + gap)
        page.paste(shot.scene, x, 62, side)
        page.text(x, 288, f"{shot.step * STEP_MS / 1e3:.1f} s", 12, MUTED)
        page.fitted(x + 44, 288, film_draw.quoted(story.said("plan", shot.step)), 13, side - 44, ROBOT)
    timeline(page, story, story.steps, 302)
    return page.finish()
