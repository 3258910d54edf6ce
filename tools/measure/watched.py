#!/usr/bin/env python3
"""watched.py - what it costs to watch a robot: the flight recorder, recordings and pages, as a table in Markdown.

usage: tools/measure/watched.py PROGRAM [--seconds N] [--browser CHROMIUM]. From the root; the bundled robot at 50 Hz.
Ways to be watched take turns, each a run of N seconds (10), three times; figures are medians of the runs.
"""

import argparse
import json
import os
import re
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

DEMO = "pipelines/demo_metaworld.lua"
PERIOD_MS, ROUNDS = 20, 3
# How many bytes a picture of two cameras has: what it is drawn as, and what most policies see.
SIDES = {64: 2 * 64 * 64 * 3, 224: 2 * 224 * 224 * 3}


class Visitor(threading.Thread):
    """A page that is open: it asks for what is new twice a second."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.over, self.bytes = url, False, []

    def run(self):
        after = -1
        while not self.over:
            try:
                with urllib.request.urlopen("%s?after=%r" % (self.url, after), timeout=20) as r:
                    data = r.read()
            except OSError:
                return  # the robot has ended
            self.bytes.append(len(data))
            frames = json.loads(data)["frames"]
            after = frames[-1]["start"] if frames else after
            time.sleep(0.5)


def watched(program, seconds, *options):
    """A run of so long: what frames took (us), and what the program had of processors for each (us)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    n = int(seconds * 1000 / PERIOD_MS)
    p = subprocess.Popen([program, "run", DEMO, "--clock", "paced", "--random-inputs", "3", "--threads", "1", "--frames", str(n),
                          "--set", "frame.period_ms=%d" % PERIOD_MS, "--set", "nodes.act.deadline.ms=%d" % (PERIOD_MS - 1), "--set",
                          "nodes.act.deadline.limit=100000", "--format", "json", *options], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    visitor = None
    if "--view" in options:
        url = ""
        while "127.0.0.1" not in url:
            url = p.stderr.readline() or sys.exit("watched: the program ended with %d before it had a page" % p.wait())
        visitor = Visitor(re.search(r"http://[^/]+/", url).group(0) + "data")
        if "open" in watched.how:
            visitor.start()
    lines = [json.loads(x) for x in p.stdout]
    p.stderr.read()
    p.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if visitor:
        visitor.over = True
    took = [x["end_us"] - x["start_us"] for x in lines if x["start_us"] is not None]
    return {"frame_us": statistics.median(took), "cpu_us": 1e6 * spent / n, "missed": sum(x["missed"] for x in lines),
            "data": max(visitor.bytes, default=0) if visitor else 0}


def topics(path):
    """Bytes of a recording's messages by topic."""
    data, at, names, sizes = open(path, "rb").read(), 8, {}, {}
    records = [(8, len(data))]
    while records:
        at, end = records.pop()
        while at + 9 <= end:
            kind, n = struct.unpack_from("<BQ", data, at)
            body = at + 9
            if kind == 4:
                name = struct.unpack_from("<I", data, body + 4)[0]
                names[struct.unpack_from("<H", data, body)[0]] = data[body + 8:body + 8 + name].decode()
            elif kind == 5:
                topic = names[struct.unpack_from("<H", data, body)[0]]
                sizes[topic] = sizes.get(topic, 0) + n + 9
            elif kind == 6:
                compression = struct.unpack_from("<I", data, body + 28)[0]
                begin = body + 32 + compression + 8
                records.append((body + n, end))
                at, end = begin, body + n
                continue
            elif kind == 15:
                break
            at = body + n
    return sizes


def drawn_ms(browser, page, folder):
    """Milliseconds until a page's script has drawn what it shows, of five loads the median."""
    copy, all_ms = folder + "/timed.html", []
    with open(copy, "w") as f:
        f.write(open(page).read().replace("</body>", "<script>document.title = 'drawn ' + performance.now()</script></body>"))
    for _ in range(5):
        p = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "file://" + copy],
                           capture_output=True, text=True)
        found = re.search(r"<title>drawn ([0-9.]+)", p.stdout)
        all_ms += [float(found.group(1))] if found else []
    return statistics.median(all_ms) if all_ms else None


def ops_against_launches(program):
    """By how many percent calls one by one differ from a launch, of each part: five runs."""
    found = {}
    for _ in range(5):
        p = subprocess.run([program, "profile", DEMO, "--ops", "--threads", "1"], capture_output=True, text=True)
        for part, percent in re.findall(r"^part (\S+) .*\(([-+][0-9.]+) %\)$", p.stdout, re.M):
            found.setdefault(part, []).append(float(percent))
    return found


def main():
    o = argparse.ArgumentParser()
    o.add_argument("program")
    o.add_argument("--seconds", type=float, default=10)
    o.add_argument("--browser")
    o = o.parse_args()
    program, folder = os.path.abspath(o.program), tempfile.mkdtemp()
    record = folder + "/robot.mcap"
    ways = {"nothing": [], "`--record`": ["--record", record], "`--view`, nobody looks": ["--view", "0"],
            "`--view`, a page is open": ["--view", "0"]}
    runs = {way: [] for way in ways}
    loads = [os.getloadavg()[0]]
    for _ in range(ROUNDS):
        for way, options in ways.items():
            if os.path.exists(record) and "--record" in options:
                os.remove(record)
            watched.how = way
            runs[way].append(watched(program, o.seconds, *options))
    loads.append(os.getloadavg()[0])
    print("load %.1f to %.1f of %d processors\n" % (*loads, os.cpu_count()))
    print("| watched by | frame p50, us | processor a frame, us | missed |\n|---|---|---|---|")
    for way, some in runs.items():
        print("| %s | %s | %s | %s |" % (way, *("%d (%d .. %d)" % (statistics.median(x), min(x), max(x)) for x in (
            [r["frame_us"] for r in some], [r["cpu_us"] for r in some], [r["missed"] for r in some]))))
    sizes, frames = topics(record), int(o.seconds * 1000 / PERIOD_MS)
    pictures = sum(n for t, n in sizes.items() if "/images/" in t or "image" in t)
    rest = sum(sizes.values()) - pictures
    minute = 60 * 1000 / PERIOD_MS / 1e6
    print("\n| figure | value |\n|---|---|")
    print("| a recording's minute at 50 Hz without pictures | %.1f MB |" % (rest / frames * minute))
    for side, each in SIDES.items():
        print("| with two pictures of %d x %d | %.0f MB |" % (side, side, (rest / frames + each) * minute))
    p = subprocess.run([program, "replay", record, "--threads", "1"], capture_output=True, text=True)
    print("| replay | %s |" % p.stdout.splitlines()[0])
    page, graph = folder + "/page.html", folder + "/graph.html"
    subprocess.run([program, "replay", record, "--html", page], check=True)
    with open(graph, "w") as f:
        subprocess.run([program, "graph", DEMO, "-T", "html", "--compiled"], stdout=f, check=True)
    for name, path in (("page of %d frames" % frames, page), ("`graph -T html --compiled`", graph)):
        ms = drawn_ms(o.browser, path, folder) if o.browser else None
        print("| %s | %.0f KB%s |" % (name, os.path.getsize(path) / 1e3, ", drawn after %.0f ms" % ms if ms else ""))
    print("| most that an open page asks for at once | %.0f KB |" % (max(r["data"] for r in runs["`--view`, a page is open"]) / 1e3))
    for part, all_percent in ops_against_launches(program).items():
        print("| `profile --ops`, %s: calls one by one against a launch | %s %% |" % (part, ", ".join("%+.1f" % x for x in all_percent)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
