"""table.py - figures of a comparison as Markdown: of a row, and README's table.

usage: table.py PEERS.json ... [THREADS]: rows of a later file stand in place of those that it measured anew
"""
import json
import pathlib
import sys


def goal(g):
    return "" if not g else " / ".join(f"{x:g}" for x in g if x)


def time(ms):
    if ms is None:
        return ""
    return f"{ms / 1e3:.2f} s" if ms >= 1e3 else f"{ms:.1f} ms"


def made_by(r):
    """What rows must share to stand side by side: the machine, the sources and how they were measured."""
    return [r.get("machine"), r.get("commit"), r.get("options")]


def with_row(rows, found):
    """found in place of the row that it measures anew, on the same machine, of the same sources, with the same options."""
    def key(r):
        return [r["row"], r["threads"], *made_by(r)]
    return [r for r in rows if key(r) != key(found)] + [found]


def of_the_newest(rows):
    """The rows that were made as the newest one was."""
    return [r for r in rows if made_by(r) == made_by(rows[-1])]


def of_row(r):
    """Everything of a row."""
    c = r["before"]
    out = [f"{r['what']}; {r['threads']} threads, load {r['before']['load'][0]} before, {r['after']['load'][0]} after; "
           f"of {c['lanes']} threads float32 {c['fma_gflops']:.0f} GF/s, bf16 {c['bf16_gflops']:.0f}, int8 {c['int8_gops']:.0f}, tile unit {c.get('tiles_gflops', 0):.0f}, reads {c['read_gb_s']:.0f} GB/s", "",
           "| | dtype | p50 | p99 | max | best | processor | peer / tectum (least, most) | of processor | goal | apart |",
           "|---|---|---|---|---|---|---|---|---|---|---|"]
    for s in [r["ours"], *r["peers"]]:
        ratio = f"{s['ratio']:.2f} ({s['least']:.2f}, {s['most']:.2f}) | {s['cpu_ratio'] or ''} | {goal(s['goal'])} | {s['apart']}" \
            if "ratio" in s else " | | |"
        out.append(f"| {s['name']} | {s.get('dtype', '')} | {time(s['p50_ms'])} | {time(s['p99_ms'])} | {time(s['max_ms'])} | "
                   f"{time(s['best_ms'])} | {time(s['cpu_ms'])} | {ratio} |")
    more = {k: v for k, v in r.items() if k not in ("row", "what", "threads", "date", "commit", "machine", "options", "before",
                                                 "after", "ours", "peers")}
    return "\n".join(out + [""] + [f"{k}: {v}" for k, v in more.items()] + [""])


def of_all(found, threads=None):
    """A line for each peer of each row, those of a model together; of rows on so many threads alone. Files of schema 1 have rows of one
    machine; of others, those that were made as the newest row was."""
    out = ["| | tectum | | peer | peer / tectum |", "|---|---|---|---|---|"]
    rows = found["rows"] if found.get("schema", 1) == 1 else of_the_newest(found["rows"])
    for r in sorted(rows, key=lambda r: (r["what"], r["ours"].get("dtype", ""))):
        for p in r["peers"] if threads in (None, r["threads"]) else ():
            out.append(f"| {r['what']} | {r['ours'].get('dtype', '')} {time(r['ours']['p50_ms'])} | {p['name']} | {time(p['p50_ms'])} | "
                       f"{p['ratio']:.2f} |")
    return "\n".join(out)


def together(files):
    """The rows of several files as of one; the last file that has a row gives it."""
    rows = {}
    for found in files:
        made = found["rows"] if found.get("schema", 1) == 1 else of_the_newest(found["rows"])
        rows |= {(r["row"], r["threads"]): r for r in made}
    return {"schema": 1, "rows": list(rows.values())}


if __name__ == "__main__":
    names = [a for a in sys.argv[1:] if not a.isdigit()]
    print(of_all(together(json.loads(pathlib.Path(n).read_text()) for n in names), *(int(a) for a in sys.argv[1:] if a.isdigit())))
