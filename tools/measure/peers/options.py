"""options.py - what tools/bench_peers is told. As a program it needs no packages: it refuses what is wrong before any are brought.

usage: options.py [ROW ...] [options] prints the folder of vla.cpp's source
"""
import argparse
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
ROWS = ("act", "smolvla", "prefill", "decode", "pi05")
SAYS = f"""tectum on this CPU beside its peers: rows in turns, ratios, ceilings of the same run; JSON, SVG and a table.

usage: tools/bench_peers [ROW ...] [options]; rows: {", ".join(ROWS)} (all of them)
"""


def options():
    p = argparse.ArgumentParser(prog="tools/bench_peers", description=SAYS, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1), help="of every side")
    p.add_argument("--rounds", type=int, default=3, help="turns of each peer")
    p.add_argument("--frames", type=int, help="of a turn; a few, as many as the row has")
    p.add_argument("--cameras", default="1,2,3", help="of the rows act (1 and 2 of them) and smolvla")
    p.add_argument("--layers", type=int, default=18, help="of the text model of prefill and decode")
    p.add_argument("--vla", metavar="FOLDER", help="source of vla.cpp, for smolvla")
    p.add_argument("--priority", type=int, default=0, help="nice value of the measured processes, -20 to 19; below 0 as root")
    p.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/tectum")
    p.add_argument("-o", "--out", type=pathlib.Path, default=ROOT / "build/peers/results", metavar="FOLDER",
                   help="peers.json, peers.svg; rows of earlier runs that are not measured now stay in it, and pictures are of those made alike")
    o = p.parse_args()
    unknown = [r for r in o.rows if r not in ROWS]
    if unknown:
        p.error(f"there is no row '{unknown[0]}'; there are {', '.join(ROWS)}")
    if o.vla and not pathlib.Path(o.vla).is_dir():
        p.error(f"--vla: there is no folder {o.vla}")
    return o


if __name__ == "__main__":
    print(options().vla or "")
