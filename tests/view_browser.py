"""view_browser.py - the page of --view in a browser: frames come, a frame is chosen, frozen, stepped from, the page is
read again; nothing is said on the console, and no text lies over another at three widths.

usage: python3 tests/view_browser.py PROGRAM BROWSER

The browser is Chromium without a window, driven over its pipe of the DevTools protocol
(https://chromedevtools.github.io/devtools-protocol/): messages of JSON that end with a NUL.
"""

import json
import os
import re
import select
import subprocess
import sys
import time

from serve_harness import BOX, PROGRAM, SLOW, check, main, servers, test

BROWSER = sys.argv[2]
DEMO = "pipelines/demo_metaworld.lua"
PATIENCE = 120 * SLOW  # seconds: a browser on a busy machine
WIDTHS = (360, 800, 1600)

# Every piece of text that is seen, as [words, left, top, right, bottom]: the lines of its range.
TEXTS = """(() => {
  const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    if (!n.textContent.trim() || ["SCRIPT", "STYLE", "TITLE", "title"].includes(n.parentNode.nodeName)) continue;
    const range = document.createRange();
    range.selectNodeContents(n);
    for (const r of range.getClientRects()) out.push([n.textContent.trim(), r.left, r.top, r.right, r.bottom]);
  }
  return out;
})()"""
FIRST_BAR = """(() => { const r = document.querySelectorAll("#frames .bar")[%d].getBoundingClientRect();
  return [r.left + r.width / 2, r.bottom - 1]; })()"""
TITLE = 'document.querySelector("#frame h3")?.textContent ?? ""'
FROZEN = 'document.getElementById("freeze").getAttribute("aria-pressed")'
BARS = 'document.querySelectorAll("#frames .bar").length'


class Browser:
    def __init__(self):
        (of_ours, self.out), (self.read, of_its) = os.pipe(), os.pipe()
        folder = os.path.join(BOX, "browser%d" % time.monotonic_ns())
        words = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
                 "--user-data-dir=" + folder, "about:blank"]
        # The browser's ends are its descriptors 3 and 4.
        self.p = subprocess.Popen(["sh", "-c", 'exec "$@" 3<&%d 4>&%d' % (of_ours, of_its), "sh", *words],
                                  pass_fds=(of_ours, of_its), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "HOME": BOX})
        servers.append(self.p)
        os.close(of_ours)
        os.close(of_its)
        self.held, self.number, self.session, self.said = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.ask(domain + ".enable")

    def message(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.held:
            left = end - time.monotonic()
            check(left > 0 and select.select([self.read], [], [], left)[0], "the browser says nothing")
            more = os.read(self.read, 1 << 16)
            check(more, "the browser has ended")
            self.held += more
        one, _, self.held = self.held.partition(b"\0")
        return json.loads(one)

    def ask(self, method, **params):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": params}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.out, json.dumps(asked).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.number:
                check("result" in m, method, m)
                return m["result"]
            self.heard(m)

    def heard(self, m):
        """What goes wrong on the page is kept."""
        what, p = m.get("method"), m.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.said.append(p["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif what == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.said.append(str(p["args"]))
        elif what == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.said.append("%s (%s)" % (p["entry"]["text"], p["entry"].get("url")))

    def value(self, expression):
        got = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        check("exceptionDetails" not in got, expression, got)
        return got["result"].get("value")

    def until(self, expression, good):
        end = time.monotonic() + PATIENCE
        while not good(self.value(expression)):
            check(time.monotonic() < end, expression, self.value(expression))
            time.sleep(0.05)
        return self.value(expression)

    def width(self, n):
        self.ask("Emulation.setDeviceMetricsOverride", width=n, height=900, deviceScaleFactor=1, mobile=False)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def click_on(self, id):
        r = self.value('(() => { const r = document.getElementById("%s").getBoundingClientRect(); '
                       "return [r.left + r.width / 2, r.top + r.height / 2]; })()" % id)
        self.click(*r)

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def end(self):
        os.close(self.out)
        os.close(self.read)
        self.p.kill()
        self.p.wait()


def running():
    """A robot that runs until it is told to end; the URL of its page."""
    p = subprocess.Popen([PROGRAM, "run", DEMO, "--random-inputs", "3", "--clock", "paced", "--frames", "1000000",
                          "--set", "frame.period_ms=100", "--threads", "1", "--view", "0", "--format", "json"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    servers.append(p)
    line = ""
    while "/view" not in line:
        line = p.stderr.readline()
        check(line, "the page's address is said")
    return p, re.search(r"http://\S+/view", line).group(0)


def frame_of(browser):
    return int(re.match(r"Frame (\d+)", browser.value(TITLE)).group(1))


def over_each_other(texts):
    """Pairs of texts whose rectangles share more than a pixel each way."""
    return [(a[0], b[0]) for i, a in enumerate(texts) for b in texts[i + 1:]
            if min(a[3], b[3]) - max(a[1], b[1]) > 1 and min(a[4], b[4]) - max(a[2], b[2]) > 1]


@test
def the_page_is_used():
    robot, url = running()
    browser = Browser()
    browser.width(WIDTHS[1])
    browser.ask("Page.navigate", url=url)
    browser.until(BARS, lambda n: n is not None and n > 5)
    check(browser.value(FROZEN) == "false" and "policy" in browser.value('document.getElementById("cadence").textContent'))

    browser.click(*browser.value(FIRST_BAR % 2))  # a frame is chosen, and the page stands still
    chosen = frame_of(browser)
    check(browser.value(FROZEN) == "true")
    had = browser.value("frames.length")
    browser.until("frames.length", lambda n: n > had)  # what is new is read all the same
    check(frame_of(browser) == chosen and browser.value('document.querySelectorAll("#frames .chosen").length') == 1)
    shown = browser.value(BARS)
    browser.click_on("on")
    check(frame_of(browser) == chosen + 1)
    graph = browser.value('[...document.querySelectorAll(".graph text")].map((t) => t.textContent)')
    check({"see", "act", "talk"} <= set(graph) and sum(t.endswith(" ms") for t in graph) >= 2, graph)
    trace = json.loads(browser.value("trace_of(frames[chosen])"))["traceEvents"]
    check({e["name"] for e in trace if e["ph"] == "X"} >= {"see", "act", "frame %d" % (chosen + 1)}, trace)
    check(all(e["dur"] >= 0 for e in trace if e["ph"] == "X"), trace)
    browser.click_on("back")
    browser.key("ArrowLeft")
    check(frame_of(browser) == chosen - 1)
    check(browser.value(BARS) == shown, "a page that stands still has more bars")

    for width in WIDTHS:  # with a frame's panel, and without moving
        browser.width(width)
        browser.until("window.innerWidth", lambda n, width=width: n == width)
        browser.value("draw()")
        texts = browser.value(TEXTS)
        check(len(texts) > 12 and not over_each_other(texts), width, over_each_other(texts))
        check(browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "the page is too wide", width)

    browser.width(WIDTHS[1])
    browser.click_on("freeze")  # it goes on
    check(browser.value(FROZEN) == "false")
    said = browser.until('[...document.querySelectorAll("#texts li")].map((t) => t.textContent)',
                         lambda t: t and any("finished" in x for x in t))
    check(all(re.match(r'request \d+ of talk: \d+ tokens, .*, ".+"$', x) for x in said), said)
    check(browser.value('document.querySelectorAll("#requests rect").length') > 0)
    browser.until(BARS, lambda n: n > shown or n == 240)
    browser.click_on("freeze")
    check(browser.value(FROZEN) == "true")

    browser.ask("Page.reload")
    browser.until("document.readyState", lambda s: s == "complete")
    browser.until(FROZEN, lambda s: s == "false")
    browser.until(BARS, lambda n: n is not None and n > 5)
    check(browser.value(TITLE) == "")

    check(browser.said == [], browser.said)
    browser.value('console.error("heard"); const over = document.querySelector("h1").cloneNode(true); '
                  'over.style = "position:absolute;left:24px;top:14px"; document.body.append(over)')
    check(over_each_other(browser.value(TEXTS)) and "heard" in browser.said[0], "the test sees nothing", browser.said)
    browser.said.clear()

    robot.terminate()  # a robot that has ended: the page says so, and goes on asking
    browser.until('document.getElementById("cadence").textContent', lambda s: s == "The robot does not answer.")
    refused = [s for s in browser.said if "ERR_CONNECTION_REFUSED" in s or "ERR_EMPTY_RESPONSE" in s or "ERR_CONNECTION_RESET" in s]
    check([s for s in browser.said if s not in refused] == [], browser.said)
    browser.end()


@test
def pages_of_two_sides_fit():
    """`bench --compare` and `replay --diff` as pages: nothing runs in them, no text over another, as wide as the screen."""
    def tectum(*words, code=0):
        p = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        check(p.returncode == code, words, p.stderr)
        return p.stdout

    name = "a_policy_of_a_very_long_name_" * 5 + "<b>x</b><script>document.title='ran'</script>"
    report, recording = json.loads(tectum("bench", DEMO, "--frames", "2", "--warmup", "1", "--rounds", "1", "--format", "json")), BOX + "/two.mcap"
    report["rows"][0]["policy"], report["command"] = name, name
    with open(BOX + "/report.json", "w") as f:
        json.dump(report, f)
    tectum("bench", "--compare", BOX + "/report.json", BOX + "/report.json", "--html", BOX + "/bench.html")
    tectum("run", DEMO, "--random-inputs", "1", "-n", "6", "--record", recording)
    tectum("replay", recording, "--policy", "isolated", "--diff", "--html", BOX + "/replay.html")
    browser = Browser()
    for page, least in (("bench", 60), ("replay", 60)):
        browser.ask("Page.navigate", url="file://%s/%s.html" % (os.path.abspath(BOX), page))
        browser.until("location.pathname + document.readyState", lambda s, page=page: s.endswith(page + ".htmlcomplete"))
        for width in WIDTHS:
            browser.width(width)
            browser.until("window.innerWidth", lambda n, width=width: n == width)
            texts = browser.value(TEXTS)
            check(len(texts) > least and not over_each_other(texts), page, width, over_each_other(texts))
            check(browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), page, width)
        check(browser.value("document.scripts.length + document.querySelectorAll('h2 b').length") == 0)
    check(browser.value('document.querySelectorAll(".time rect.is").length') == 6)
    check(browser.said == [], browser.said)
    browser.end()


sys.exit(main())
