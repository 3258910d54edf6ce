"""The evaluation set as a file: python questions.py OUT.jsonl [--count 400] [--objects 12] [--hops 1] [--seed 2026]

A line is one question about a household of its own:
    prefix, segments, query    texts; the prompt is prefix, segments in order, query
    answer                  what a right model says, before the end of text
    hops                    facts that must be joined to know the place, less one; 0, 1, .. take turns
    needed                  the segments that the answer depends on: the object's, those it leans on, the receptacle's
"""
import argparse
import json
import random

import household


CROWD = 4       # at most every fourth object is where the answer is: else a guess of the fullest place would often be right


def asked(rng, objects, hops, depth):
    while True:
        home = household.household(rng, objects, hops)
        at = list(home.place.values())
        names = [n for n in home.place if home.hops[n] == depth and CROWD * at.count(home.place[n]) <= objects]
        if names:
            return home, household.query(rng, home, rng.choice(names))


def lines(seed, count, objects, hops):
    rng = random.Random(f"questions {seed}")
    for i in range(count):
        home, q = asked(rng, objects, hops, i % (hops + 1))
        yield dict(prefix=household.PREFIX, segments=[s.text for s in home.segments], query=q.text,
                   answer="".join(":" + w for w in q.answer), hops=q.hops, needed=q.chain)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out")
    p.add_argument("--count", type=int, default=400)
    p.add_argument("--objects", type=int, default=12)
    p.add_argument("--hops", type=int, default=1)
    p.add_argument("--seed", type=int, default=2026)
    a = p.parse_args()
    with open(a.out, "w") as f:
        for line in lines(a.seed, a.count, a.objects, a.hops):
            f.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
