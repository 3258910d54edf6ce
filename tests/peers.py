"""peers.py - tools/measure/peers with sides that only pretend to compute. usage: peers.py FOLDER KERNELS"""
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE.parent / "tools/measure/peers"
sys.path.insert(0, str(PEERS))
import numpy as np  # noqa: E402
import picture  # noqa: E402
import options  # noqa: E402
import row  # noqa: E402
import row_text  # noqa: E402
import rows  # noqa: E402
import side  # noqa: E402
import table  # noqa: E402
import turns  # noqa: E402

W, KERNELS = pathlib.Path(sys.argv[1]), sys.argv[2]
count = failed = 0
WORKER = """import sys
sys.path.insert(0, {peers!r})
from worker import serve
print("a library prints this")
serve(lambda: (float({ms}), [[{value}]]), {{"dtype": "f32"}})
"""


def check(text, holds, said=""):
    global count, failed
    count += 1
    failed += not holds
    print(f"{'ok' if holds else 'not ok'} {count} - {text}", flush=True)
    if not holds and said:
        print(f"# {said}", file=sys.stderr)


def raised(run):
    try:
        run()
    except RuntimeError as why:
        return str(why)
    return ""


def pretending(name, ms, value):
    script = W / f"{name}.py"
    script.write_text(WORKER.format(peers=str(PEERS), ms=ms, value=value))
    return side.Side(name, [sys.executable, script], W / f"{name}.txt")


class Given:
    """A side whose turns are known beforehand."""

    def __init__(self, name, all_turns):
        self.name, self.left, self.about = name, list(all_turns), {}
        self.turns, self.cpu, self.waited = [], [], []

    def turn(self, _):
        self.turns.append(self.left.pop(0))
        self.cpu.append(sum(self.turns[-1]))
        self.waited.append(float("nan"))


def of_turns():
    check("a quantile is a value that was measured", [turns.quantile([3, 1, 2], q) for q in (0.5, 0.99, 0)] == [2, 3, 1])
    ours = Given("ours", [[1, 1, 9], [3, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1]])
    a, b = Given("a", [[4, 4, 4], [5, 5, 5]]), Given("b", [[2, 2, 2], [2, 2, 2]])
    ratios, cpu = turns.take_turns(ours, [a, b], 2, 3)
    check("a peer's turn stands between two of ours", ratios == {"a": [2, 5], "b": [1, 2]}, str(ratios))
    check("what was not measured is null in JSON", turns.of_side(ours)["waited_ms"] is None)
    return ours, [a, b], ratios, cpu


def of_rows(ours, peers, ratios, cpu):
    goals = {"a": [3.0, 4.0], "b": None}
    peak = {"load": [1.0, 1.0, 1.0], "lanes": 2, "fma_gflops": 1, "bf16_gflops": 0, "int8_gops": 0, "read_gb_s": 1}
    found = {"row": "r", "what": "a model & <its> picture", "threads": 2, "date": "", "commit": "", "before": peak, "after": peak,
             "ours": turns.of_side(ours), "more": 0.5,
             "peers": [turns.of_side(p) | turns.of_ratio(ratios[p.name], cpu[p.name], goals[p.name]) | {"apart": None} for p in peers]}
    found = json.loads(json.dumps(found))
    text = table.of_row(found)
    check("a row's table has its sides, goals and further figures",
          all(s in text for s in ("| a |", "| b |", "3.50 (2.00, 5.00)", "3 / 4", "more: 0.5")), text)
    check("README's table has a line for each peer", table.of_all({"rows": [found]}).count("\n") == 3)
    again, faster = found | {"commit": "b"}, found | {"date": "later"}
    kept = table.with_row(table.with_row([found], again), faster)
    check("a row stands in for an older one of the same sources, machine and options alone", kept == [again, faster], str(kept))
    check("README's table and the picture are of rows that were made alike",
          table.of_the_newest(kept) == [faster] and table.of_all({"schema": 2, "rows": kept}).count("\n") == 3)
    drawn = xml.etree.ElementTree.fromstring(picture.of_rows([found]))
    bars = [e for e in drawn if e.tag.endswith("rect") and e.get("fill") in ("#2a7", "#c63")]
    check("the picture has a bar for each peer", len(bars) == 2 and float(bars[0].get("width")) > 2 * float(bars[1].get("width")))


def of_sides():
    one, same, other = pretending("one", 2, 7), pretending("same", 3, 7), pretending("other", 3, 8)
    for s in (one, same, other):
        s.start()
    one.turn(4)
    check("a worker answers beside what libraries print", one.turns == [[2.0] * 4] and one.about == {"dtype": "f32"})
    a = row.Row("r", "", one, [same], {}, compare=0.01)
    a.check(W)
    check("sides that compute the same are let through", a.distances == {"same": 0.0}, str(a.distances))
    said = raised(lambda: row.Row("r", "", one, [other], {}, compare=0.01).check(W))
    check("a peer that computes something else is not timed", "other computes something else" in said, said)
    fewer = row.Row("r", "", one, [same], {}, compare=0.01, results=lambda: np.array([[7.0, 7.0]]))
    check("nor is one whose results are fewer", "same computes something else" in raised(lambda: fewer.check(W)))
    for s in (one, same, other):
        s.stop()
    ends = side.Side("ends", [sys.executable, "-c", "import sys; sys.exit('no such model')"], W / "ends.txt")
    said = raised(ends.start)
    check("a worker that ends is told with what it said", "ends has ended: no such model" in said, said)
    ends.stop()


def of_peaks():
    out = subprocess.run([KERNELS, "--peaks"], capture_output=True, text=True, check=True).stdout
    lanes = [json.loads(line) for line in out.splitlines()]
    check("the harness says what one thread and two can do at most",
          [x["lanes"] for x in lanes] == [1, 2] and all(x["fma_gflops"] > 0 and x["read_gb_s"] > 0 for x in lanes), out)


of_rows(*of_turns())
of_sides()
of_peaks()
decode = {"threads": 2, "ours": {"p50_ms": 100.0}, "before": {"lanes": 2, "read_gb_s": 40.0}}
check("a token's bytes are compared with the bandwidth of as many threads",
      [row_text.of_read_bandwidth(2e9, decode | {"threads": n}) for n in (2, 4)] == [{"of_read_bandwidth": 0.5}, {}])
check("the rows are those that may be asked for", tuple(rows.ROWS) == options.ROWS)
run = subprocess.run([sys.executable, "-I", "-S", PEERS / "options.py", "nothing"], capture_output=True, text=True)
check("a row that is none is refused, also where no packages are", run.returncode == 2 and "there is no row 'nothing'" in run.stderr, run.stderr[-300:])
print(f"1..{count}")
sys.exit(1 if failed else 0)
