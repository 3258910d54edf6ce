"""How a film looks: one frame (views, words, chunk, timeline) and the strip of four moments."""
from PIL import Image, ImageDraw, ImageFont

from sim import STEP_MS

WIDTH, HEIGHT = 900, 480
SCALE = 2                       # drawn this much larger and reduced: smooth lines
PAPER, CARD, LINE = (251, 250, 247), (243, 241, 236), (217, 213, 205)
INK, MUTED = (38, 50, 62), (112, 122, 132)
ROBOT, DONE, FAILED = (28, 106, 128), (42, 138, 88), (178, 74, 60)
FLIGHT, MARK = (243, 190, 98), (186, 118, 24)
CHUNK = (141, 184, 205), (183, 211, 224)
SAYS = (206, 226, 216), (226, 236, 212)
CURVES = (("hand x", (198, 84, 62)), ("hand y", (58, 132, 92)), ("hand z", (50, 106, 172)), ("gripper", (128, 92, 168)))
COLOURS = (CARD, LINE, INK, MUTED, ROBOT, DONE, FAILED, FLIGHT, MARK, *CHUNK, *SAYS, *(c for _, c in CURVES))
VIEW, SMALL = 264, 128          # sides of the large view and of the two that the model sees
LEFT, RIGHT = 96, 870           # of the timeline


def mix(colour, share):
    """A colour on paper."""
    return tuple(round(share * c + (1 - share) * p) for c, p in zip(colour, PAPER))


class Page:
    """A picture drawn in units of its final pixels."""

    def __init__(self, width, height):
        self.size = width, height
        self.image = Image.new("RGB", (width * SCALE, height * SCALE), PAPER)
        self.draw = ImageDraw.Draw(self.image)

    def scaled(self, points):
        return [SCALE * v for v in points]

    def box(self, x0, y0, x1, y1, fill, radius=0.0, outline=None):
        self.draw.rounded_rectangle(self.scaled((x0, y0, max(x0, x1 - 1 / SCALE), y1)), SCALE * radius, fill, outline)

    def line(self, points, colour, width=1.0):
        self.draw.line([tuple(self.scaled(p)) for p in points], colour, round(SCALE * width), "curve")

    def dot(self, x, y, radius, colour):
        self.draw.ellipse(self.scaled((x - radius, y - radius, x + radius, y + radius)), colour)

    def font(self, size):
        return ImageFont.load_default(SCALE * size)

    def width(self, text, size):
        return self.draw.textlength(text, self.font(size)) / SCALE

    def text(self, x, y, text, size=12, colour=INK, anchor="ls", bold=False):
        """`y` is the baseline."""
        self.draw.text(self.scaled((x, y)), text, colour, self.font(size), anchor, stroke_width=0.5 * bold)

    def fitted(self, x, y, text, size, room, colour=INK):
        """Text that is shortened to its room, or left out."""
        if self.width(text, size) > room:
            while text and self.width(text + "...", size) > room:
                text = text[:-1]
            text = text.rstrip() + "..." if len(text) > 3 else ""
        self.text(x, y, text, size, colour)

    def paste(self, picture, x, y, side, smooth=True):
        how = Image.Resampling.LANCZOS if smooth else Image.Resampling.NEAREST
        self.image.paste(picture.resize((side * SCALE, side * SCALE), how), (x * SCALE, y * SCALE))

    def finish(self):
        return self.image.resize(self.size, Image.Resampling.BOX)


def quoted(text):
    return f'"{text}"' if text else ""


def draw_views(page, shot):
    page.paste(shot.corner, 20, 20, VIEW)
    for i, picture in enumerate(shot.seen):
        page.paste(picture, 294, 20 + i * (VIEW - SMALL), SMALL, smooth=False)
    page.text(20, 300, "the robot", 11, MUTED)
    page.text(294, 300, "what the model sees", 11, MUTED)


def draw_words(page, instruction, sentence):
    for y, who, text, colour in ((42, "you", instruction, INK), (76, "robot", sentence, ROBOT)):
        page.text(446, y, who, 13, MUTED)
        page.text(496, y, quoted(text) or "...", 23, colour if text else MUTED, bold=bool(text))


def draw_chunk(page, shot, last):
    """Four curves over the chunk's 16 steps: those executed so far strong, the others pale."""
    count = 16 if shot.use is None else len(shot.use.actions)
    for i, (name, colour) in enumerate(CURVES):
        left, top = 446 + (i % 2) * 219, 100 + (i // 2) * 95
        page.box(left, top, left + 205, top + 89, CARD, 4)
        page.text(left + 8, top + 15, name, 11, MUTED)
        middle, inner = top + 53, left + 10
        page.line([(inner, middle), (inner + 185, middle)], LINE)
        if shot.use is None:
            continue
        heights = (middle - 26 * max(-1, min(1, action)) for action in shot.use.actions[:, i])
        at = [(inner + 185 * k / (count - 1), y) for k, y in enumerate(heights)]
        page.line(at, mix(colour, 0.35), 2)
        first, now = shot.use.start - shot.use.begin, min(shot.step, last) - shot.use.begin
        done = at[first:now + 1]
        if len(done) > 1:
            page.line(done, colour, 3.5)
        if done:
            page.dot(*done[-1], 4.5, colour)
    page.text(446, 300, f"the chunk: {count} actions, {count * STEP_MS:.0f} ms; executed strong, the rest pale", 11, MUTED)


class Timeline:
    """What happened until a step, over the time of the whole episode."""

    def __init__(self, page, story, step):
        self.page, self.story, self.now, self.last = page, story, step, max(1, story.steps)

    def x(self, step):
        return LEFT + (RIGHT - LEFT) * min(step, self.last) / self.last

    def draw(self):
        self.axis()
        self.flights()
        self.chunks()
        self.sentences()
        self.page.line([(self.x(self.now), 334), (self.x(self.now), 443)], INK)
        if self.now >= self.story.steps:
            self.outcome()

    def axis(self):
        page, rules, seconds = self.page, self.story.rules, self.last * STEP_MS / 1e3
        page.text(20, 326, f"an observation every {rules.execute * STEP_MS:.0f} ms, its actions "
                  + (f"{rules.age * STEP_MS:.0f} ms later" if rules.age else "at once") + "; shown at half speed", 11, MUTED)
        for y, name in ((351, "observe"), (381, "execute"), (417, "say")):
            page.text(20, y, name, 12, MUTED)
        page.line([(LEFT, 443), (RIGHT, 443)], LINE)
        gap = next(g for g in (0.1, 0.2, 0.5, 1.0, 5.0) if seconds / g <= 13)
        for k in range(int(seconds / gap + 1e-9) + 1):
            x = self.x(k * gap * 1e3 / STEP_MS)
            page.line([(x, 443), (x, 448)], LINE)
            page.text(x, 462, f"{k * gap:.1f} s" if k else "0", 11, MUTED, "ms")

    def flights(self):
        """A mark where it was observed, a bar until its actions are there."""
        rules = self.story.rules
        lanes = 1 + (rules.age > rules.execute)
        for i, sight in enumerate(self.story.sights):
            if sight.step > self.now:
                break
            top, height = 338 + (i % lanes) * 9, 18 / lanes - (lanes > 1)
            x, end = self.x(sight.step), self.x(min(sight.step + rules.age, self.now))
            if end > x:
                self.page.box(x, top, end, top + height, FLIGHT, 2)
            self.page.box(x - 1, top, x + 1.5, top + height, MARK)

    def chunks(self):
        uses = self.story.uses
        for i, use in enumerate(uses):
            end = min(use.begin + len(use.actions), uses[i + 1].start if i + 1 < len(uses) else self.last, self.now)
            if end > use.start:
                self.page.box(self.x(use.start), 367, self.x(end) - 1, 387, CHUNK[i % 2], 2)

    def sentences(self):
        spoken = self.story.spoken
        for i, (start, text) in enumerate(spoken):
            until = spoken[i + 1][0] if i + 1 < len(spoken) else self.last
            if start < self.now and text:
                x, end = self.x(start), self.x(min(until, self.now)) - 1
                self.page.box(x, 399, end, 425, SAYS[i % 2], 3)
                self.page.fitted(x + 8, 416, text, 13, end - x - 14)

    def outcome(self):
        text, colour = ("done in", DONE) if self.story.success else ("not done after", FAILED)
        text += f" {self.last * STEP_MS / 1e3:.2f} s"
        width = self.page.width(text, 13)
        self.page.line([(RIGHT, 330), (RIGHT, 443)], colour, 2.5)
        self.page.box(RIGHT + 10 - width - 20, 310, RIGHT + 10, 331, colour, 10)
        self.page.text(RIGHT - width / 2, 325, text, 13, PAPER, "ms")


def frame(story, shot):
    """One picture of the film."""
    page = Page(WIDTH, HEIGHT)
    draw_views(page, shot)
    draw_words(page, story.instruction, story.sentence(shot.step))
    draw_chunk(page, shot, story.steps - 1)
    Timeline(page, story, shot.step).draw()
    return page.finish()


def strip(story, shots):
    """The moments side by side: the view of the corner, the wrist's in it, the time and the sentence."""
    page, side, gap = Page(WIDTH, 300), 208, 12
    page.text(16, 28, "you", 12, MUTED)
    page.text(46, 28, quoted(story.instruction), 17, INK, bold=True)
    for i, shot in enumerate(shots):
        x = 16 + i * (side + gap)
        page.paste(shot.corner, x, 42, side)
        page.box(x + side - 76, 42 + side - 76, x + side, 42 + side, PAPER)
        page.paste(shot.wrist, x + side - 72, 42 + side - 72, 72)
        page.text(x, 270, f"{shot.step * STEP_MS / 1e3:.2f} s", 12, MUTED)
        if shot.step >= story.steps:
            page.text(x + 44, 270, "done" if story.success else "not done", 12, DONE if story.success else FAILED, bold=True)
        page.fitted(x, 290, quoted(story.sentence(shot.step)) or "...", 15, side, ROBOT)
    return page.finish()
