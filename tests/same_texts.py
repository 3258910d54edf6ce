"""same_texts.py A B: whether two outputs of `tectum run --format json` have the same texts.

Of a request that both know, the tokens of one must begin with those of the other: a policy that looks
at times may let a text go on a frame later. Ends with 1 where a text differs or none is in both."""
import json
import sys


def texts(path):
    out = {}
    for line in open(path):
        for node, parts in (json.loads(line).get("text") or {}).items():
            for part in parts:
                out.setdefault((node, part["request"]), []).extend(part.get("tokens") or [])
    return out


a, b = texts(sys.argv[1]), texts(sys.argv[2])
both = [key for key in a if a[key] and b.get(key)]
bad = [key for key in both if a[key][:len(b[key])] != b[key][:len(a[key])]]
if bad or not both:
    sys.exit("texts differ: %s; %d in both" % (bad[:3], len(both)))
