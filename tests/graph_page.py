"""graph_page.py - pages of `graph -T html`, parsed: where boxes, texts and links are, what the data
says, and that no page asks for anything from elsewhere."""

import glob
import html.parser
import json
import re
import subprocess
import sys

PROGRAM, WORK = sys.argv[1:]
PIPELINES = sorted(glob.glob("pipelines/*.lua") + glob.glob("pipelines/graphs/*.lua"))
results = []


def report(ok, text, *why):
    results.append(ok)
    print("%sok %d - %s" % ("" if ok else "not ", len(results), text), flush=True)
    if not ok:
        print("# %r" % (why,), file=sys.stderr)


class Page(html.parser.HTMLParser):
    """Boxes and texts by item, points by link, attributes that name something elsewhere."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.boxes, self.texts, self.links, self.scripts, self.outside = {}, [], [], [], []
        self.item = self.link = self.tag = None
        self.at = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.outside += [v for k, v in a.items() if k in ("src", "href", "action", "onclick") or
                         (v and re.match(r"(https?:)?//", v) and k != "xmlns")]
        self.tag = tag
        if tag == "g":
            self.item = a.get("id")
            self.link = [] if a.get("class") == "link" else None
        elif tag == "rect" and self.item and self.item not in self.boxes:
            self.boxes[self.item] = tuple(float(a[k]) for k in ("x", "y", "width", "height"))
        elif tag == "text":
            self.at = float(a["x"]), float(a["y"]), a.get("class", "")
        elif tag == "path" and self.link is not None and "l" in a.get("class", "").split():
            numbers = [float(x) for x in re.findall(r"-?[\d.]+", a["d"])]
            self.links.append(list(zip(numbers[::2], numbers[1::2])))
        elif tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.tag = None
        if tag == "g":
            self.item = self.link = None

    def handle_data(self, data):
        if self.tag == "text" and self.item:
            self.texts.append((self.item, *self.at, data))
        elif self.tag == "script":
            self.scripts[-1] += data


def crossings(page):
    """Points of links that lie within a box, but for a pixel at its rim."""
    found = []
    for link in page.links:
        for (x1, y1), (x2, y2) in zip(link, link[1:]):
            for step in range(9):
                x, y = x1 + (x2 - x1) * step / 8, y1 + (y2 - y1) * step / 8
                found += [(name, x, y) for name, (bx, by, w, h) in page.boxes.items()
                          if bx + 1 < x < bx + w - 1 and by + 1 < y < by + h - 1]
    return found


def overlaps(page):
    """Boxes that cover each other, and texts that are wider than their box."""
    items = sorted(page.boxes.items())
    found = []
    for i, (a, (ax, ay, aw, ah)) in enumerate(items):
        for b, (bx, by, bw, bh) in items[i + 1:]:
            if ax < bx + bw and bx < ax + aw and ay < by + bh and by < ay + ah:
                found.append((a, b))
    for item, x, y, look, text in page.texts:
        bx, by, w, h = page.boxes[item]
        wide = len(text) * (7.6 if "n" in look.split() else 7.0 if "hot" in look else 6.0)
        if x + wide > bx + w or y > by + h:
            found.append((item, text))
    return found


def graph(*arguments, code=0):
    p = subprocess.run([PROGRAM, "graph", "-T", "html", *arguments], capture_output=True, text=True)
    if p.returncode != code:
        raise SystemExit("graph %s: %d %s" % (arguments, p.returncode, p.stderr[-300:]))
    return p.stdout


crossed, covered, outside, broken = [], [], [], []
for pipeline in PIPELINES:
    page = Page(graph(pipeline))
    data = json.loads(page.scripts[0])
    crossed += [(pipeline, c) for c in crossings(page)[:2]]
    covered += [(pipeline, c) for c in overlaps(page)[:2]]
    outside += [(pipeline, o) for o in page.outside]
    if {i["id"] for i in data["items"]} != set(page.boxes) or len(data["links"]) != len(page.links):
        broken.append(pipeline)
report(len(PIPELINES) > 10, "there are pipelines", PIPELINES)
report(not crossed, "no link crosses a box", crossed[:5])
report(not covered, "no box covers another, no text leaves its box", covered[:5])
report(not outside, "nothing comes from elsewhere", outside[:5])
report(not broken, "every item and link of the picture is in the data", broken)

demo = "pipelines/demo_metaworld.lua"
page = Page(graph("--compiled", demo))
data = json.loads(page.scripts[0])
act = [i for i in data["items"] if i["name"] == "act"][0]
report(act["fields"]["kind"] == "action" and ":" in act["fields"]["at"], "an item has its fields and place", act)

recording = WORK + "/r.mcap"
subprocess.run([PROGRAM, "run", demo, "--random-weights", "1", "--size", "tiny", "--random-inputs", "3",
                "--frames", "4", "--record", recording], check=True, capture_output=True)
page = Page(graph("--recording", recording, demo))
items = {i["name"]: i for i in json.loads(page.scripts[0])["items"]}
report(items["act"]["p50_ms"] > 0 and 0 < items["act"]["share"] < 1, "a recording gives the heat", items["act"])
report(not overlaps(page) and not crossings(page), "with heat everything has its room", overlaps(page))
costs = WORK + "/r.costs"
subprocess.run([PROGRAM, "profile", demo, "--random-weights", "1", "--size", "tiny", "--frames", "3",
                "--rounds", "1", "-o", costs], check=True, capture_output=True)
items = {i["name"]: i for i in json.loads(Page(graph("--costs", costs, demo)).scripts[0])["items"]}
report(all(items[n]["p50_ms"] > 0 for n in ("see", "act", "talk")), "a cost file gives the heat", items)

planner = "pipelines/graphs/g13_plan_is_prompt.lua"  # its stream has a text before the first one is said
form = subprocess.run([PROGRAM, "expand", planner], capture_output=True, text=True, check=True).stdout
evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
first = json.loads(form)["nodes"]
first = [n["out"]["default"] for n in first if isinstance(n.get("out"), dict) and n["out"].get("default")]
path = WORK + "/hostile.json"
with open(path, "w") as f:
    f.write(form.replace(json.dumps(first[0]), json.dumps(evil)) if first else form)
page = Page(graph(path))
shown = [t for *_, t in page.texts if "<script>" in t]
report(len(page.scripts) == 2 and shown and not page.outside, "hostile texts are text", len(page.scripts), first,
       page.outside)
report(evil in page.scripts[0].replace("\\u003c", "<"), "and stand in the data as they are")
for arguments, code in ((["--costs", costs, "-T", "dot", demo], 2), (["--costs", demo, demo], 3),
                        (["--recording", demo, demo], 3)):
    p = subprocess.run([PROGRAM, "graph", "-T", "html", *arguments], capture_output=True, text=True)
    report(p.returncode == code and len(p.stderr.splitlines()) == 1, "exit %d: %s" % (code, arguments[0]),
           p.returncode, p.stderr)
print("1..%d" % len(results))
sys.exit(not all(results))
