"""Goals on the table: what is told, what follows from it, and what a planner reads and says. No simulator is needed here.

A planner is asked once a second. It reads what is remembered, in this order, then the goal, then a question:

    the drawer is open             `seen`: what the arm said last
     press the button              `said`: the skill that the planner said last; "ready" when a goal is new
    found the drawer closed        told once, by whoever set the table
    found the faucet open
     pull the drawer, press the button       `did`: the skills that were finished for this goal (its own earlier answer)

and answers `next:` with a skill or "done", and `did:` with the list, one skill longer where `seen` says that `said` is done.
Every skill stands behind a blank, so that its words are the same tokens in a goal, a memory and an answer. Each has a verb of
its own: a small planner then finds it by one word.
"""
import copy
import random
import zlib
from dataclasses import dataclass

SKILLS = ("press the button", "pull the drawer", "push the drawer", "open the faucet", "close the faucet")
OPPOSITE = {"pull the drawer": "push the drawer", "push the drawer": "pull the drawer",
            "open the faucet": "close the faucet", "close the faucet": "open the faucet"}
MAKES = {"pull the drawer": "open", "push the drawer": "closed", "open the faucet": "open", "close the faucet": "closed"}
APPROACH = {"press the button": "move above the button", "pull the drawer": "move to the drawer handle",
            "push the drawer": "move to the drawer", "open the faucet": "move to the faucet",
            "close the faucet": "move to the faucet"}
ACT = {"press the button": "press it down", "pull the drawer": "pull the handle", "push the drawer": "push it shut",
       "open the faucet": "turn it open", "close the faucet": "turn it closed"}
ENDED = {"press the button": "the button is down", "pull the drawer": "the drawer is open",
         "push the drawer": "the drawer is closed", "open the faucet": "the faucet is open",
         "close the faucet": "the faucet is closed"}
IDLE = "done"                   # what the arm is told when there is nothing to do
WAITING = "wait"                # and what it says then
READY = "ready"
NOTHING = "nothing"
PREFIX = "robot memory:\n"
NEXT, DID = "\nnext:", "\ndid:"
KINDS = ("order", "restore", "again", "what")
AGAIN, WHAT = "do it again", "what did you do?"
HELD_OUT = 5                    # every fifth list of skills is never trained on
UNLISTED = 0.5                  # how often a list of what was done that has the skill that was said is trained on without it
AGAINS = 12                     # weight of "do it again" among goals, most of which do not fit a memory and become others
BEFORE = 0.22                   # how often the arm still says that the skill before has ended, where a skill was said
ARM = (0.46, 0.15, 0.14)        # how often what was said has ended, is under way, and the arm is elsewhere


@dataclass(frozen=True)
class Goal:
    """What was told; the skills that follow from it; whether the list of what was done is that of the goal before."""
    kind: str
    text: str
    skills: tuple
    keeps: bool = False         # `did` is about the goal before


@dataclass
class Memory:
    """What is remembered when a planner is asked."""
    found: dict                 # thing -> "open" or "closed"
    did: tuple = ()
    seen: str = WAITING
    said: str = READY           # a skill, IDLE or READY

    def segments(self):
        """Texts by their ids, in the order in which they are put."""
        facts = {f"found {thing}": f"found the {thing} {state}\n" for thing, state in self.found.items()}
        return {"seen": self.seen, "said": spoken(self.said), **facts, "did": written(self.did)}


def spoken(text):
    return text if text == READY else " " + text


def written(skills):
    return "".join("," * (i > 0) + " " + s for i, s in enumerate(skills)) or " " + NOTHING


def held_out(skills):
    """Whether a list of skills is kept out of training."""
    return zlib.crc32("|".join(skills).encode()) % HELD_OUT == 0


def order(skills):
    return Goal("order", "first " + " then ".join(skills), tuple(skills))


def making(thing, state):
    """The skill that makes a thing so."""
    return next(skill for skill, made in MAKES.items() if made == state and thing_of(skill) == thing)


def thing_of(skill):
    return skill.split()[2]


def restoring(found):
    return [making(thing, state) for thing, state in found.items()]


def changing(found):
    """The skills that change what was found, and the button."""
    return ["press the button"] + [OPPOSITE[skill] for skill in restoring(found)]


def restore(skills, found):
    return Goal("restore", "first " + " then ".join(skills) + " then leave it as you found it",
                tuple(skills) + tuple(restoring(found)))


def again(did):
    return Goal("again", AGAIN, tuple(did), True)


def what():
    return Goal("what", WHAT, (), True)


def ended(memory):
    return memory.said in ENDED and memory.seen == ENDED[memory.said]


def answer(goal, memory):
    """-> what to say next, what was done: what a planner is to say, by rule."""
    if memory.said == IDLE:
        return IDLE, memory.did
    if memory.said not in goal.skills:              # a new goal, also where an answer to the one before came after it
        return (goal.skills[0] if goal.skills else IDLE), (memory.did if goal.keeps else ())
    if not ended(memory):
        return memory.said, memory.did
    rest = goal.skills[goal.skills.index(memory.said) + 1:]
    did = memory.did if goal.keeps or memory.said in memory.did else memory.did + (memory.said,)
    return (rest[0] if rest else IDLE), did


def states(goal, memory):
    """The memories that come up while a goal is played by the rule, each with the right answers: of each skill that it was said and the
    arm has not answered yet, that it is under way, that it has ended."""
    out = []
    for _ in range(3 * len(goal.skills) + 2):
        said, did = answer(goal, memory)
        out.append((copy.deepcopy(memory), said, did))
        if memory.said == said and said in SKILLS:
            memory.seen = ENDED[said] if memory.seen == ACT[said] else ACT[said]
        memory.did, memory.said = did, said
    return out


def state(goal, memory):
    """What kind of moment a memory is of, in words."""
    if memory.said == IDLE:
        return "all done"
    if memory.said not in goal.skills:
        return "a new goal"
    if ended(memory):
        return "has ended"
    if memory.seen in (APPROACH[memory.said], ACT[memory.said]):
        return "is under way"
    return "the one before has ended" if memory.seen in ENDED.values() else "the arm is elsewhere"


def found(rng):
    return {"drawer": rng.choice(("open", "closed")), "faucet": rng.choice(("open", "closed"))}


def listed(rng, least, most, held):
    """A list of skills, no skill twice, that is or is not kept out of training."""
    while True:
        skills = tuple(rng.sample(SKILLS, rng.randint(least, most)))
        if held_out(skills) == held:
            return skills


def goal(rng, kind, facts, did, held=False, least=3, most=5):
    """A goal of that kind with `least` to `most` skills (for `again` and `what` those are in `did` already)."""
    if kind == "order":
        return order(listed(rng, least, most, held))
    if kind == "restore":
        change = changing(facts)
        return restore(rng.sample(change, rng.randint(max(1, least - 2), min(3, most - 2))), facts)
    return again(did) if kind == "again" else what()


def asked(rng, before=BEFORE, unlisted=UNLISTED):
    """A memory as it comes up in between: what is trained on. `before`: how often the arm still says that the skill before has ended."""
    facts = found(rng)
    did = listed(rng, 1, 5, False) if rng.random() < 0.85 else ()
    said = rng.choices((READY, IDLE, *SKILLS), (3, 1, 3, 3, 3, 3, 3))[0]
    rest = tuple(skill for skill in did if skill != said)
    if unlisted and rest != did and rng.random() < unlisted and not held_out(rest):
        did = rest                                  # else four of five lists of four have it, and a fifth is hardly ever added
    other = rng.choice([skill for skill in SKILLS if skill != said])
    elsewhere = rng.choice((WAITING, APPROACH[other], ACT[other], ENDED[other]))
    if said not in SKILLS:
        return Memory(facts, did, elsewhere, said)
    if did and rng.random() < 0.5:                  # as in play: the last one done, or of a list that is done again the one before
        last = did[did.index(said) - 1] if said in did else did[-1]
        other = last if last != said else other
    seen = rng.choices((ENDED[other], ENDED[said], rng.choice((APPROACH[said], ACT[said])), elsewhere),
                       (before, *(share * (1 - before) / sum(ARM) for share in ARM)))[0]
    return Memory(facts, did, seen, said)


def fitting(rng, memory, agains=AGAINS):
    """A goal in which `memory` can come up; seldom one in which it does not belong."""
    kind = rng.choices(KINDS, (2, 4, agains, 0.5))[0]
    if kind in ("again", "what") and not memory.did:
        kind = "order"
    g = goal(rng, kind, memory.found, memory.did, least=1 if kind == "order" else 3)
    while memory.said in SKILLS and memory.said not in g.skills and rng.random() < 0.95:
        kind = rng.choice(("order", "restore")) if kind == "again" else kind
        g = goal(rng, kind, memory.found, memory.did, least=1 if kind == "order" else 3)
    return g


def corpus():
    """Every word in every place it can stand in: what a tokenizer is trained on."""
    for skill in SKILLS:
        yield f"first {skill} then {skill} then leave it as you found it"
        yield written((skill, skill))
        yield from (APPROACH[skill], ACT[skill], ENDED[skill], spoken(skill))
    for thing in ("drawer", "faucet"):
        for state in ("open", "closed"):
            yield f"found the {thing} {state}\n"
    yield from (AGAIN, WHAT, READY, WAITING, " " + IDLE, " " + NOTHING, PREFIX, NEXT, DID)


def seeded(seed):
    return random.Random(f"goals {seed}")
