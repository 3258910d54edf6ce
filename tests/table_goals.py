"""Goals on the table, in words: what follows from what is told and remembered (tools/table/goals.py). Prints what is wrong."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools/table"))

import goals

wrong = []


def check(true, text):
    if not true:
        wrong.append(text)


def play(goal, memory):
    """The skills that the rule says, one after the other, where each is done at once."""
    came = []
    for _ in range(20):
        said, did = goals.answer(goal, memory)
        memory.did, memory.said = did, said
        if said == goals.IDLE:
            break
        if not came or came[-1] != said:
            came.append(said)
            check(goals.answer(goal, memory)[0] == said, f"{goal.text}: '{said}' is said until it is done")
        memory.seen = goals.ENDED[said]
    return tuple(came)


home = goals.Memory({"drawer": "closed", "faucet": "open"})
check(list(home.segments().values()) == ["wait", "ready", "found the drawer closed\n", "found the faucet open\n", " nothing"],
      "texts of a memory, in their order")
goal = goals.restore(["pull the drawer", "press the button"], home.found)
check(goal.text == "first pull the drawer then press the button then leave it as you found it", goal.text)
check(play(goal, home) == ("pull the drawer", "press the button", "push the drawer", "open the faucet"), "what was found is restored")
check(goals.written(home.did) == " pull the drawer, press the button, push the drawer, open the faucet", "and listed")
home.said = goals.READY
check(goals.answer(goals.what(), home) == (goals.IDLE, goal.skills), "what was done is told")
check(play(goals.again(home.did), home) == goal.skills and home.did == goal.skills, "and done again")
late = goals.Memory(home.found, goal.skills, goals.WAITING, "open the faucet")
check(goals.answer(goals.order(["press the button"]), late) == ("press the button", ()), "an answer to the goal before is none to this one")
rng = goals.seeded(1)
for kind in goals.KINDS:
    lengths = set()
    for _ in range(300):
        found, did = goals.found(rng), goals.listed(rng, 3, 5, True)
        goal = goals.goal(rng, kind, found, did, True)
        memory = goals.Memory(found, did if goal.keeps else ())
        lengths.add(len(goal.skills))
        check(play(goal, memory) == goal.skills, f"{goal.text}: its skills in their order")
        check(memory.did == (did if goal.keeps else goal.skills), f"{goal.text}: what was done")
        check(len(set(goal.skills)) == len(goal.skills), f"{goal.text}: no skill twice")
    check(lengths == ({0} if kind == "what" else {3, 4, 5}), f"{kind}: three to five skills, {lengths}")
fifth, repeats, before = [], [], []
for _ in range(2000):
    memory = goals.asked(rng)
    goal = goals.fitting(rng, memory)
    check(not (goal.kind == "order" and goals.held_out(goal.skills)), "a list that is kept out is not trained on")
    check(not (memory.did and goals.held_out(memory.did)), "nor is it remembered as done")
    if goals.ended(memory) and len(memory.did) == 4:
        fifth.append(len(goals.answer(goal, memory)[1]) == 5)
    repeats.append(goal.kind == "again" and goals.ended(memory) and memory.said in goal.skills)
    before.append(goals.state(goal, memory) == "the one before has ended")
check(0.3 < sum(fifth) / len(fifth) < 0.7, f"a fifth skill is added to a list as often as not: {sum(fifth)} of {len(fifth)}")
check(sum(repeats) / len(repeats) > 0.05, f"what comes next when all is done again is asked often enough: {sum(repeats)}")
check(0.15 < sum(before) / len(before) < 0.25, f"the arm says as often as in play that the skill before has ended: {sum(before)}")
came = [goals.state(goals.order(["press the button", "pull the drawer"]), memory)
        for memory, _, _ in goals.states(goals.order(["press the button", "pull the drawer"]), goals.Memory(home.found))]
check(came == ["a new goal", "the arm is elsewhere", "is under way", "has ended",
               "the one before has ended", "is under way", "has ended", "all done"], f"the moments of a goal in play: {came}")
print("\n".join(dict.fromkeys(wrong)))
sys.exit(bool(wrong))
