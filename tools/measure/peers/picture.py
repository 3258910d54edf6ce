"""picture.py - ratios of a comparison as bars in SVG: the peer's time over tectum's, a line at 1, a mark at each goal."""
from xml.sax.saxutils import escape

WIDTH, LABEL, BAR, LINE = 1000, 560, 360, 20


def of_rows(rows):
    bars = [(f"{r['what']} ({r['threads']}): {p['name']}", p) for r in rows for p in r["peers"]]
    most = max([p["ratio"] for _, p in bars] + [x for _, p in bars for x in p["goal"] or [] if x] + [1.0])
    scale, height = BAR / most, LINE * (len(bars) + 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="{LABEL}" y="14">the peer\'s time / tectum\'s; | goals</text>']
    for i, (label, p) in enumerate(bars):
        y, floor = LINE * (i + 1), (p["goal"] or [0.0])[0]
        fill = "#2a7" if p["ratio"] >= floor else "#c63"
        out += [f'<text x="{LABEL - 6}" y="{y + 13}" text-anchor="end">{escape(label)}</text>',
                f'<rect x="{LABEL}" y="{y + 3}" width="{p["ratio"] * scale:.1f}" height="{LINE - 6}" fill="{fill}"/>',
                f'<text x="{LABEL + p["ratio"] * scale + 4:.1f}" y="{y + 14}">{p["ratio"]:.2f}</text>']
        out += [f'<line x1="{LABEL + g * scale:.1f}" x2="{LABEL + g * scale:.1f}" y1="{y + 1}" y2="{y + LINE - 1}" stroke="black"/>'
                for g in p["goal"] or [] if g]
    x = LABEL + scale
    out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{LINE}" y2="{height - LINE}" stroke="gray" stroke-dasharray="3"/>')
    return "\n".join(out + ["</svg>", ""])
