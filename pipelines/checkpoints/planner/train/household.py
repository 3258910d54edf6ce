"""A household as KEEP's dictionary text, the questions asked about it, and their answers. All of it is made up by a seed.

A memory segment is one fact and one line. Receptacles that can be closed come first, then objects:

    {position:kitchen,state:closed,object:fridge}
    {position:fridge,state:clean,object:cup}
    {position:cup,state:dirty,object:fork}       the fork is where the cup is: a fact that needs another one (1 hop)

Questions, and answers as a model continues them:

    find:fork    :fridge                          where it is
    fetch:fork   :fridge:open                     and what to do there: `open` when it is closed, else `go`

What is known comes before what it is known about (position, then object), and values are written behind their key without
a blank, so that a value is the same token in a fact, a question and an answer.
"""
import random
from dataclasses import dataclass

OBJECTS = ("cup plate fork knife spoon bowl pan pot apple bread egg tomato lettuce potato mug bottle book pen pencil laptop "
           "phone key card watch towel soap cloth sponge candle vase pillow box bag ball lamp clock").split()
SURFACES = "table shelf sofa bed desk counter sink".split()
CLOSABLE = "fridge cabinet drawer microwave oven".split()
ROOMS = "kitchen bathroom bedroom hall".split()
STATES = "none clean dirty sliced cooked filled".split()
PREFIX = "robot memory:\n"
NEAR_SHARE = 0.6        # of the objects that could be told by another one


@dataclass
class Segment:
    text: str
    about: str          # the object or receptacle that it describes
    told: str           # its position as the segment says it: a room, a place or another object
    note: str           # what the training-only aid asks for at `about`: the place of an object, the verb of a receptacle


@dataclass
class Query:
    text: str
    answer: list        # of words; each is written as ":word"
    hops: int
    chain: list         # segments that the answer depends on, by index: the object's, those it leans on, the receptacle's


@dataclass
class Household:
    segments: list
    place: dict         # object -> where it is in the end
    hops: dict          # object -> facts that had to be joined to know that, less one


def text_of(position, state, name):
    return f"{{position:{position},state:{state},object:{name}}}\n"


def household(rng, objects, hops):
    """`objects` objects; some are told by the position of another one, at most `hops` times in a row."""
    names = rng.sample(OBJECTS, objects)
    told, place, depth = {}, {}, {}
    for i, name in enumerate(names):
        near = [n for n in names[:i] if depth[n] < hops]
        if near and rng.random() < NEAR_SHARE:
            told[name] = rng.choice(near)
            place[name], depth[name] = place[told[name]], depth[told[name]] + 1
        else:
            told[name] = place[name] = rng.choice(SURFACES + CLOSABLE)
            depth[name] = 0
    segments = []
    for name in CLOSABLE:
        if name in place.values():
            state = rng.choice(("closed", "opened"))
            room = rng.choice(ROOMS)
            segments.append(Segment(text_of(room, state, name), name, room, "open" if state == "closed" else "go"))
    rng.shuffle(segments)
    for name in names:
        segments.append(Segment(text_of(told[name], rng.choice(STATES), name), name, told[name], place[name]))
    return Household(segments, place, depth)


def query(rng, home, name):
    index = {s.about: i for i, s in enumerate(home.segments)}
    place = home.place[name]
    chain = [index[name]]
    while home.segments[chain[-1]].told in home.place:
        chain.append(index[home.segments[chain[-1]].told])
    if rng.random() < 0.5:
        return Query(f"find:{name}", [place], home.hops[name], chain)
    if place not in index:
        return Query(f"fetch:{name}", [place, "go"], home.hops[name], chain)
    return Query(f"fetch:{name}", [place, home.segments[index[place]].note], home.hops[name], chain + [index[place]])


def queries(rng, home, count):
    """Every second one asks for an object that is told by another one, where there is one."""
    names = list(home.place)
    deep = [n for n in names if home.hops[n] > 0] or names
    return [query(rng, home, rng.choice(deep if i % 2 else names)) for i in range(count)]


def corpus():
    """Every word in every place it can stand in: what the tokenizer is trained on."""
    for name in OBJECTS + CLOSABLE:
        yield text_of(name, "none", name)
        yield f"find:{name}:open"
        yield f"fetch:{name}:go"
    for position in SURFACES + CLOSABLE + ROOMS:
        for state in STATES + ["closed", "opened"]:
            yield text_of(position, state, "cup")
    yield PREFIX


if __name__ == "__main__":
    r = random.Random(1)
    h = household(r, 8, 2)
    print("".join(s.text for s in h.segments))
    for q in queries(r, h, 6):
        print(q)
