"""table.py - figures of a comparison as Markdown: of a row, and README's table.

usage: table.py PEERS.json [THREADS]
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


def of_row(r):
    """Everything of a row."""
    c = r["before"]
    out = [f"{r['what']}; {r['threads']} threads, load {r['before']['load'][0]} before, {r['after']['load'][0]} after; "
           f"of {c['lanes']} threads float32 {c['fma_gflops']:.0f} GF/s, bf16 {c['bf16_gflops']:.0f}, int8 {c['int8_gops']:.0f}, reads {c['read_gb_s']:.0f} GB/s", "",
           "| | dtype | p50 | p99 | max | best | processor | peer / tectum (least, most) | of processor | goal | apart |",
           "|---|---|---|---|---|---|---|---|---|---|---|"]
    for s in [r["ours"], *r["peers"]]:
        ratio = f"{s['ratio']:.2f} ({s['least']:.2f}, {s['most']:.2f}) | {s['cpu_ratio'] or ''} | {goal(s['goal'])} | {s['apart']}" \
            if "ratio" in s else " | | |"
        out.append(f"| {s['name']} | {s.get('dtype', '')} | {time(s['p50_ms'])} | {time(s['p99_ms'])} | {time(s['max_ms'])} | "
                   f"{time(s['best_ms'])} | {time(s['cpu_ms'])} | {ratio} |")
    more = {k: v for k, v in r.items() if k not in ("row", "what", "threads", "date", "commit", "before", "after", "ours", "peers")}
    return "\n".join(out + [""] + [f"{k}: {v}" for k, v in more.items()] + [""])


def of_all(found, threads=None):
    """A line for each peer of each row, those of a model together; of rows on so many threads alone."""
    out = ["| | tectum | | peer | peer / tectum |", "|---|---|---|---|---|"]
    for r in sorted(found["rows"], key=lambda r: (r["what"], r["ours"].get("dtype", ""))):
        for p in r["peers"] if threads in (None, r["threads"]) else ():
            out.append(f"| {r['what']} | {r['ours'].get('dtype', '')} {time(r['ours']['p50_ms'])} | {p['name']} | {time(p['p50_ms'])} | "
                       f"{p['ratio']:.2f} |")
    return "\n".join(out)


if __name__ == "__main__":
    print(of_all(json.loads(pathlib.Path(sys.argv[1]).read_text()), *map(int, sys.argv[2:])))
