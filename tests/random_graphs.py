"""random_graphs.py - pipelines drawn from the grammar of what runs, and what must hold for each.

Every seed gives a pipeline of one to five tiny models (prefills and their rates, actions on this frame
or the one before, rings, decodes, drafts, scores, memory, text edges, prompts of several texts or of none,
triggers; one robot or two, whose inputs a prefill may read together), a scenario (arrivals, cancels, ends,
instructions, late inputs, ticks without an observation) and a policy. On the virtual clock:

    the run ends, and as many frames are there as were asked for
    each request arrives once, is admitted or refused, ends at most once, and no event is behind its end
    no request of a fair policy is forgotten: it ends, or it is young
    regions of keys are never freed twice, and at the end only live requests and one frame hold any
    launches begin and end in turn, and the actions of each node leave once a frame
    of a ring each session has at most as many sequences in flight as stages; each leaves at most once, in turn

On the real executor, which is slower, actions and texts are those of the interpreter. Actions of rings
are those that each session has alone.

usage: random_graphs.py PROGRAM [--virtual N] [--real N] [--first SEED] [--keep FOLDER]
A failing seed is shrunk: nodes and fields are left out while it still fails. The file is kept.
"""

import argparse
import collections
import copy
import json
import os
import random
import subprocess
import sys
import tempfile

FRAMES = 120
MODELS = 4  # that a pipeline may have
OLD = 100  # frames that a request may live for under any of the policies
POLICIES = ["default", "chaos", "fill", "oxygen", "slack_k", "shared_kv", "batch_only"]
PICTURES = ["front", "wrist"]
ARMS = ["left", "right"]  # of two robots
SLOTS = 3  # cameras that a model has


class Refused(Exception):
    """The pipeline is not valid, or not in this release."""


# --- a pipeline as nodes; inputs and resources follow from them ----------------------------------


def lua(value):
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(lua(v) for v in value) + " }"
    if isinstance(value, dict):
        return "{ " + ", ".join("%s = %s" % (k, lua(v)) for k, v in value.items()) + " }"
    return repr(value)


class Raw:
    def __init__(self, text):
        self.text = text

    def __deepcopy__(self, memo):
        return self


def raw(text, *args):
    return Raw(text % args)


def streams(case):
    return {n["name"] for n in case["nodes"] if n["kind"] in ("decode", "score")}


def inputs_of(case):
    used = []
    for node in case["nodes"]:
        for name in node.get("reads", []) + [node.get("prompt")]:
            if name and not isinstance(name, Raw) and name not in used and not (name in streams(case)):
                used.append(name)
    for name in used:
        if name.split("/")[-1] in PICTURES:
            yield "image { name = %s, h = 56, w = 56 }" % lua(name)
        elif name.split("/")[-1] == "state":
            yield "tensor { name = %s, shape = { 8 } }" % lua(name)
        elif name == "past":
            yield "segments { name = 'past', max_segments = 3, tokens_each = 8 }"
        else:
            yield "text { name = %s, max_tokens = 8, default = 'what is there' }" % lua(name)


def prefix_of(kv):
    """The kv.frame that a kv.requests shares: of_NAME, or of_NAME_more where it is the second."""
    return kv[3:].removesuffix("_more")


def resources_of(case):
    for name, ring in case.get("rings", {}).items():
        yield "kv.ring { name = %s, tokens = %d, %s }" % (
            lua(name), case["rows"] + ring["stages"], ", ".join("%s = %s" % (k, lua(v)) for k, v in ring.items()))
        yield "buffer { name = 'of_%s_out', shape = { %d }, dtype = 'i32' }" % (name, ring["stages"])
    for node in case["nodes"]:
        if node["kind"] == "prefill" and node["writes"] not in case.get("rings", {}):
            yield "kv.frame { name = %s, tokens = %d }" % (lua(node["writes"]), case["rows"])
        if node["kind"] == "action":
            yield "buffer { name = %s, shape = { 4, 8 } }" % lua(node["out"])
    if any(n["kind"] == "memory_load" for n in case["nodes"]):
        yield "kv.segments { name = 'mem', tokens = 32 }"
    for kv in sorted({n["kv"] for n in case["nodes"] if str(n.get("kv")).startswith("of_")}):
        most = max(n.get("max_tokens", 8) + 16 for n in case["nodes"] if n.get("kv") == kv)
        yield "kv.requests { name = %s, tokens = %d, slots = %d, share_prefix = %s }" % (
            lua(kv), case["rows"] + most, case.get("more", {}).get(kv, case["slots"]), lua(prefix_of(kv)))


def robots_of(case):
    """Two robots, each with the cameras that are read; or none: it is then the plain one of all inputs."""
    read = {name for node in case["nodes"] for name in node.get("reads", []) if not isinstance(name, Raw)}
    robots = []
    for arm in ARMS if case.get("arms") else []:
        cameras = ["{ slot = %s, input = %s }" % (lua(slot), lua(name))
                   for slot, name in zip(("base_0_rgb", "left_wrist_0_rgb"), PICTURES) if arm + "/" + name in read]
        robots.append("%s = { name = %s, cameras = { %s }, state = { inputs = { { input = 'state', size = 8 } } }, "
                      "actions = { size = 8 }, norm = { mode = 'none' }, prompt = { state = true } }" % (
                          arm, lua(arm), ", ".join(cameras)))
    return "  robots = { %s }," % ", ".join(robots) if robots else ""


def text_of(case):
    models = ", ".join("%s = model { arch = %s }" % item for item in
                       ((name, lua(arch)) for name, arch in case["models"].items()
                        if any(name in (n.get("model"), n.get("draft", {}).get("model")) for n in case["nodes"])))
    lines = ["return pipeline {", "  name = 'random', schema = 1, frame = frame { period_ms = 100, sessions = %d }," % case.get("together", 1),
             "  models = { %s }," % models, robots_of(case), "  inputs = { %s }," % ", ".join(inputs_of(case)),
             "  resources = { %s }," % ", ".join(resources_of(case)), "  nodes = {"]
    for node in case["nodes"]:
        fields = {k: v for k, v in node.items() if k != "kind"}
        lines.append("    %s %s," % ("decode" if node["kind"] == "advance" else node["kind"], lua(fields)))
    lines.append("  },")
    if any("partition" in n for n in case["nodes"]):
        lines.append("  partitions = { sm { name = 'a', share = 0.5 }, sm { name = 'b', share = 0.5 } },")
    lines.append("  capture = capture { batch = { 1, 2, 3, 4, 6, 8 }, k = %s, ratio = { 1.0 }%s%s }," % (
        lua(case["k"]), ", slices = %d" % case["slices"] if case["slices"] else "",
        ", depth = %s" % lua(case["depth"]) if "depth" in case else ""))
    return "\n".join(lines) + "\n}\n"


# --- drawing one ---------------------------------------------------------------------------------


def trigger(r, prefix, own):
    """When requests are born; `own`: their prefill has a trigger of its own, which may start them."""
    if own and r.random() < 0.5:
        return raw('on_change("%s")', prefix)
    return r.choice([raw("every(%d)", r.randint(1, 6)), raw("on_change()"), raw("on_request()"),
                     raw('on_change("%s")', prefix)])


def texts(r, case, prefix, model, causal, frames, own=False):
    """Nodes that make texts behind a prefix."""
    for i in range(r.choice([0, 1, 1, 1, 2, 3]) if frames else r.choice([1, 1, 2])):
        scores = causal and r.random() < 0.3
        node = {"kind": "score" if scores else "decode", "name": "%s_says%d" % (prefix, i), "model": model,
                "kv": prefix if scores and r.random() < 0.5 else "of_" + prefix,
                "spawn": trigger(r, prefix, own)}
        if scores:
            node["candidates"] = r.sample(["yes", "no", "stop here", "go on", "left", "right"], r.randint(2, 4))
            node["ends"], node["mean"] = r.random() < 0.3, r.random() < 0.3
        else:
            node["max_tokens"] = r.randint(1, 8)
            if causal and frames and r.random() < 0.3:
                node["prompt"] = r.choice(["question", "other"])
            if r.random() < 0.3:
                node["temperature"], node["top_k"] = 0.8, r.choice([0, 5])
            elif causal and r.random() < 0.4:
                small = "quick" if model == "arm" else "small"
                if len({*case["models"], small}) <= MODELS:
                    case["models"][small] = "pi05_causal" if model == "arm" else "qwen2"
                    node["draft"] = {"model": small, "tokens": r.randint(1, 4)}
        node["out"] = raw('stream { name = "%s", default = "stay" }', node["name"])
        if r.random() < 0.3:
            node["supersede"] = True
        if r.random() < 0.4:
            node["deadline"] = raw("soft { ms = %d, on_miss = '%s' }", r.choice([30, 300, 3000]),
                                   r.choice(["shed", "continue"]))
        if r.random() < 0.1:
            node["when"] = raw("policy()")
        case["nodes"].append(node)


def hard_nodes(r, case, see, obs, model):
    """A prefill that makes the frames, at its rate, and the actions on its keys or on those before."""
    prefill = {"kind": "prefill", "name": see, "model": model, "writes": obs,
               "reads": PICTURES[: r.randint(1, 2)] + ["state", "prompt"]}
    if r.random() < 0.25:
        prefill["spawn"] = r.choice([raw("every(%d)", r.randint(2, 3)), raw("on_change()"), raw('on_change("prompt")')])
    case["nodes"].append(prefill)
    for i in range(r.choice([1, 1, 1, 2])):
        name = "%s_act%d" % (model, i)
        case["nodes"].append({"kind": "action", "name": name, "model": model, "steps": r.randint(1, 3), "out": "of_" + name,
                              "kv": raw('prev "%s"', obs) if r.random() < 0.15 else obs,
                              "deadline": raw("hard { ms = %d, on_miss = 'hold' }", r.choice([60, 90]))})
        if r.random() < 0.15:
            case["nodes"][-1]["spawn"] = raw("every(%d)", r.randint(2, 3))


def waits_or_remembers(r, case):
    """Rings whose prompt has a text of its frame, or a memory."""
    if r.random() < 0.35:
        case["models"]["eye"] = "pi05_causal"
        says = {"kind": "decode", "name": "says", "model": "eye", "kv": "of_seen", "max_tokens": r.randint(1, 6),
                "spawn": raw("every(%d)", r.randint(1, 3)), "out": raw('stream { name = "says", default = "stay" }')}
        if r.random() < 0.3:
            case["models"]["quick"] = "pi05_causal"
            says["draft"] = {"model": "quick", "tokens": r.randint(1, 4)}
        case["nodes"] += [{"kind": "prefill", "name": "see", "model": "eye", "writes": "seen",
                           "reads": PICTURES[: r.randint(1, 2)] + ["prompt"]}, says]
        for node in case["nodes"]:
            if node["name"].startswith("enter") and r.random() < 0.6:
                node["after"], node["reads"][-1] = "says", "says"
        first, *more = [n for n in case["nodes"] if n["name"].startswith("enter")]
        for node in more:
            if node["reads"] == first["reads"]:  # two rings of one prompt would say the same
                node["reads"][-1] = "goal"
                node.pop("after")
    if r.random() < 0.35:
        ring = r.randrange(len(case["rings"]))
        for node in case["nodes"]:
            if node["name"] == "advance%d" % ring:
                node.pop("pack_with", None)
            elif node["name"] == "enter%d" % ring and "after" not in node:
                node["after"] = "recall"
        case["nodes"].append({"kind": "memory_load", "name": "recall", "model": "arm", "reads": ["past"], "from": "mem",
                              "into": "ring%d" % ring})


def draw_rings(r):
    """One ring or two, for one robot or several; questions on what a ring has seen last, a planner beside it."""
    stages = r.randint(1, 7)
    case = {"nodes": [], "models": {"arm": "pi05_causal"}, "rows": 80, "slots": r.choice([1, 2]), "rings": {}, "more": {},
            "slices": r.choice([0, 0, 2]), "k": r.choice([[1, 8], [1, 2, 4], [1]]), "seed": r.randint(1, 99),
            "policy": r.choice(["default", "chaos", "fill", "actionflow"]),
            "depth": sorted(r.sample(range(1, stages + 1), r.randint(1, min(3, stages))))}
    rings = r.choice([1, 1, 2])
    for i in range(rings):
        name = "ring%d" % i
        case["rings"][name] = {"stages": stages if r.random() < 0.7 else r.randint(max(case["depth"]), 7),
                               "on_change": r.choice(["flush", "keep"]), "pack": r.choice(["packed", "packed", "gather"]),
                               "shift": r.choice(["rotate", "rotate", "device_copy"])}
        stays = case["rings"][name]["stages"]
        case["nodes"] += [
            {"kind": "prefill", "name": "enter%d" % i, "model": "arm", "writes": name,
             "reads": PICTURES[: r.randint(1, 2)] + [["prompt", "goal"][i]]},
            {"kind": "advance", "name": "advance%d" % i, "model": "arm", "kv": raw('prev "%s"', name), "max_tokens": stays,
             "out": "of_%s_out" % name, "deadline": raw("hard { ms = %d, on_miss = 'hold' }", r.choice([60, 90]))}]
        if r.random() < 0.7:
            case["nodes"][-1]["pack_with"] = "enter%d" % i
    waits_or_remembers(r, case)
    if case["rings"]["ring0"]["pack"] == "packed" and r.random() < 0.5:
        texts(r, case, "ring0", "arm", True, True)
        for node in case["nodes"]:
            if node["kind"] == "score":
                node["kv"] = "of_ring0"
        said = [n for n in case["nodes"] if n.get("kv") == "of_ring0"]
        if said and r.random() < 0.4:
            text = r.choice(said)
            await_text(r, text)
            case["models"]["arm2"] = "pi05"
            hard_nodes(r, case, "hears", "heard", "arm2")
            see = next(n for n in case["nodes"] if n["name"] == "hears")
            see["after"], see["reads"][-1] = text["name"], text["name"]
            see.pop("spawn", None)
        for node in said:
            if r.random() < 0.2:
                node.pop("when", None)
                node["deadline"] = raw("hard { ms = %d }", r.choice([40, 70, 95]))
    if r.random() < 0.4:
        case["models"]["planner"] = "qwen2"
        think = {"kind": "prefill", "name": "think", "model": "planner", "reads": ["goal"], "writes": "context"}
        own = r.random() < 0.4
        if own:
            think["spawn"] = r.choice([raw("every(%d)", r.randint(2, 9)), raw('on_change("goal")')])
        case["nodes"].append(think)
        texts(r, case, "context", "planner", True, False, own)
    if any(n["kind"] == "score" or n.get("max_tokens", 2) < 2 for n in case["nodes"]):
        case["k"] = [1] + case["k"][case["k"][0] == 1:]
    case["scenario"] = scenario(r, case)
    without(r, case)
    case["sessions"] = case["together"] = r.choice([1, 2, 2, 3, 4])
    return case


def draw(seed):
    if random.Random(seed + 41).random() < 0.2:
        return draw_rings(random.Random(seed))
    r = random.Random(seed)
    case = {"nodes": [], "models": {}, "rows": 80, "slots": r.choice([1, 2, 4, 8]), "slices": r.choice([0, 0, 1, 3]),
            "k": r.choice([[1, 8], [1, 2, 4], [1], [2, 3, 8]]), "policy": r.choice(POLICIES), "seed": r.randint(1, 99)}
    arm = r.random() < 0.7
    if arm:
        causal = r.random() < 0.6
        case["models"]["arm"] = "pi05_causal" if causal else "pi05"
        hard_nodes(r, case, "see", "obs", "arm")
        if r.random() < 0.2:
            case["models"]["arm2"] = "pi05"
            hard_nodes(r, case, "see2", "obs2", "arm2")
        texts(r, case, "obs", "arm", causal, True)
        if r.random() < 0.35:
            own = r.random() < 0.4
            look = {"kind": "prefill", "name": "look", "model": "arm", "writes": "high", "reads": ["front", "goal"]}
            if own:
                look["spawn"] = raw("every(%d)", r.randint(2, 9))
            case["nodes"].append(look)
            texts(r, case, "high", "arm", causal, False, own)
    elif r.random() < 0.6:
        case["nodes"].append({"kind": "memory_load", "name": "recall", "model": "planner", "reads": ["past"],
                              "from": "mem", "into": "context"})
    if not arm or r.random() < 0.5:
        case["models"]["planner"] = "qwen2"
        own = arm and r.random() < 0.4
        think = {"kind": "prefill", "name": "think", "model": "planner", "reads": ["goal"], "writes": "context"}
        if own:
            think["spawn"] = r.choice([raw("every(%d)", r.randint(2, 9)), raw('on_change("goal")')])
        if case["nodes"] and case["nodes"][0]["kind"] == "memory_load":
            think["after"], think["template"] = "recall", "facts"
        case["nodes"].append(think)
        texts(r, case, "context", "planner", True, not arm, own)
        if not arm and not streams(case):
            texts(r, case, "context", "planner", True, False)
        if any(n["kind"] == "memory_load" for n in case["nodes"]) and r.random() < 0.5:
            said = r.choice(sorted(n["name"] for n in case["nodes"] if n["kind"] in ("decode", "score")))
            case["nodes"].append({"kind": "remember", "name": "keep", "reads": [said], "into": "mem"})
    if arm and r.random() < 0.2:
        case["models"]["third"] = "qwen2"
        case["nodes"].append({"kind": "prefill", "name": "ask", "model": "third", "reads": ["other"], "writes": "more"})
        texts(r, case, "more", "third", True, False)
    for node in case["nodes"]:
        if node["kind"] == "prefill" and streams(case) and r.random() < 0.3:
            node["reads"][-1] = r.choice(sorted(streams(case)))
            if str(getattr(node.get("spawn"), "text", "")).startswith("on_change"):
                node["spawn"] = raw('on_change("%s")', node["reads"][-1])
    if arm and r.random() < 0.15:
        for node in case["nodes"]:
            if node["kind"] in ("prefill", "action", "decode") and node["model"] == "arm":
                node["partition"] = "b" if node["kind"] == "decode" else "a"
    if any(n["kind"] == "score" or n.get("max_tokens", 2) < 2 for n in case["nodes"]):
        case["k"] = [1] + case["k"][case["k"][0] == 1:]  # a k below the smallest captured one is a pause
    same_pictures(random.Random(seed + 29), case)
    said_first(random.Random(seed + 31), case)
    on_texts(random.Random(seed + 13), case)
    remembers(random.Random(seed + 17), case)
    prompts(random.Random(seed + 23), case)
    slots(random.Random(seed + 19), case)
    left_out(random.Random(seed + 37), case)
    hard_texts(random.Random(seed + 43), case)
    two_robots(random.Random(seed + 47), case)
    case["scenario"] = scenario(r, case)
    without(random.Random(seed + 53), case)
    case["sessions"] = sessions(random.Random(seed + 7), case)
    return case


def two_robots(r, case):
    """Each model in frames has a robot of its own; a prefill that requests wait for may look at both."""
    names = {n["name"] for n in case["nodes"]}
    if "see2" not in names or r.random() < 0.3:
        return
    case["arms"] = True
    if "look" not in names and case["slots"] < 8:
        case["nodes"].append({"kind": "prefill", "name": "look", "model": "arm", "writes": "high", "reads": ["front", "goal"]})
        texts(r, case, "high", "arm", False, False)
    for node in case["nodes"]:
        if node["kind"] != "prefill":
            continue
        own = ARMS[node["name"] == "see2"]
        node["reads"] = [own + "/" + n if n in PICTURES + ["state"] else n for n in node["reads"]]
        if getattr(node.get("spawn"), "text", "") == 'on_change("front")':
            node["spawn"] = raw('on_change("left/front")')
        if node["name"] != "look":
            continue
        more = r.sample(["right/" + n for n in PICTURES] + ["left/state", "right/state"], r.randint(0, 3))
        for name in more if node.get("template") != "caption" else more[:1]:
            full = sum(str(n).split("/")[-1] in PICTURES for n in node["reads"]) == SLOTS and "state" not in name
            if not full and (node.get("template") != "caption" or "state" not in name):
                node["reads"].insert(r.randint(0, len(node["reads"])), name)


def without(r, case):
    """Ticks without an observation."""
    case["missing"] = sorted(r.sample(range(8), r.choice([0, 0, 1, 2, 3])))
    case["scenario"]["missing"] = [f + 8 * r.randrange(FRAMES // 8) for f in case["missing"]]


def same_pictures(r, case):
    """Two prompts of one model and observation, whose pictures' rows are then computed once."""
    see = case["nodes"][0] if case["nodes"] else {}
    if see.get("name") != "see":
        return
    for look in case["nodes"]:
        if look["name"] == "look" and r.random() < 0.6:
            look["reads"] = [n for n in see["reads"] if n in PICTURES] + look["reads"][-1:]
    if r.random() < 0.15:
        case["nodes"] += [dict(see, name="twice", writes="again", template="bare"),
                          {"kind": "action", "name": "acts_again", "model": "arm", "steps": 2, "out": "of_acts_again", "kv": "again",
                           "deadline": raw("hard { ms = %d, on_miss = 'hold' }", r.choice([50, 95]))}]


def await_text(r, text):
    """What a text that a hard node waits for cannot have is left out; a draft it may keep."""
    for key in ("deadline", "when", "partition") + (("draft",) if r.random() < 0.3 else ()):
        text.pop(key, None)


def said_first(r, case):
    """A prefill that waits for a text of its frame and reads it, and actions on its keys."""
    see = case["nodes"][0] if case["nodes"] else {}
    texts = [n for n in case["nodes"] if n["kind"] in ("decode", "score") and n["kv"] in ("obs", "of_obs")]
    if see.get("name") != "see" or not texts or r.random() < 0.6:
        return
    text = r.choice(texts)
    await_text(r, text)
    model = r.choice(["arm", "ear"])
    case["models"].setdefault(model, "pi05_causal")
    hears = {"kind": "prefill", "name": "hears", "model": model, "writes": "heard", "after": text["name"],
             "reads": [n for n in see["reads"] if n in PICTURES] + ["state", text["name"]]}
    if r.random() < 0.3:
        hears["spawn"] = r.choice([raw("every(%d)", r.randint(2, 3)), raw('on_change("%s")', text["name"])])
    case["nodes"] += [hears, {"kind": "action", "name": "acts_heard", "model": model, "steps": 2, "out": "of_acts_heard",
                              "kv": "heard", "deadline": raw("hard { ms = %d, on_miss = 'hold' }", r.choice([30, 80, 95]))}]
    if r.random() < 0.4:
        case["nodes"].append({"kind": "decode", "name": "heard_says", "model": model, "kv": "of_heard", "max_tokens": 4,
                              "spawn": trigger(r, "heard", False), "out": raw('stream { name = "heard_says", default = "stay" }')})


def on_texts(r, case):
    """Actions on the keys of a text: the newest finished one's, or that of their frame, which they wait for."""
    for act in case["nodes"]:
        texts = [n for n in case["nodes"] if n["kind"] in ("decode", "score") and act.get("kv") in (n["kv"], n["kv"][3:])]
        said = [n for n in texts if n["kind"] == "decode" and n["kv"] == "of_" + str(act.get("kv"))]
        if act["kind"] != "action" or not texts or r.random() < 0.6:
            continue
        if said and r.random() < 0.7:
            act["or_kv"], act["kv"] = act["kv"], "of_" + act["kv"]
        if r.random() < 0.6:
            first = r.choice(texts)
            act["after"] = first["name"]
            await_text(r, first)


def hard_texts(r, case):
    """Texts of frames that have a hard deadline, beside those of actions."""
    frames = {n["kv"] for n in case["nodes"] if n["kind"] == "action" and not isinstance(n["kv"], Raw)}
    for node in case["nodes"]:
        if node["kind"] not in ("decode", "score") or "partition" in node:
            continue
        prefix = prefix_of(node["kv"]) if node["kv"].startswith("of_") else node["kv"]
        if prefix in frames and r.random() < 0.15:
            node.pop("when", None)
            node["deadline"] = raw("hard { ms = %d }", r.choice([40, 70, 95]))


def left_out(r, case):
    """Actions that a policy may leave out of a frame, and prefills that requests wait for; chaos does."""
    for node in case["nodes"]:
        waits = node["kind"] == "prefill" and node["name"] in ("look", "think", "ask") and case["models"].get("arm")
        if (node["kind"] == "action" or waits) and r.random() < 0.25:
            node["when"] = raw("policy()")


def prompts(r, case):
    """Prompts of several texts, inputs and streams in any order, and such as have fixed words alone."""
    for node in case["nodes"]:
        if node["kind"] != "prefill":
            continue
        triggered = str(getattr(node.get("spawn"), "text", "")).startswith("on_change")
        if node["name"] == "look" and r.random() < 0.3:
            node["reads"], node["template"] = PICTURES[: r.randint(1, 2)], "caption"
            if "spawn" in node:
                node["spawn"] = r.choice([raw("every(%d)", r.randint(2, 9)), raw('on_change("front")')])
        for _ in range(r.choice([0, 0, 0, 1, 2]) if node.get("template") != "caption" else 0):
            more = r.choice(sorted(streams(case)) + ["other"]) if streams(case) else "other"
            if more not in node["reads"]:
                said = raw('prev "%s"', more) if more in streams(case) and r.random() < 0.3 else more
                node["reads"].insert(r.randint(0, len(node["reads"])), said)
                if triggered and r.random() < 0.5:
                    node["spawn"] = raw('on_change("%s")', more)


def slots(r, case):
    """A second kv.requests behind a prefix, and questions behind any prefix of a causal model."""
    acted = {n["kv"] for n in case["nodes"] if n["kind"] == "action"}
    case["more"] = {}
    for node in case["nodes"]:
        if node["kind"] not in ("decode", "score"):
            continue
        causal = node["model"] in ("planner", "third") or case["models"].get("arm") == "pi05_causal"
        if node["kind"] == "decode" and causal and "prompt" not in node and r.random() < 0.15:
            node["prompt"] = r.choice(["question", "other"])
        if node["kv"].startswith("of_") and node["kv"] not in acted and case["slots"] < 8 and r.random() < 0.3:
            node["kv"] += "_more"
            case["more"][node["kv"]] = r.randint(1, 2)


def remembers(r, case):
    """A memory in the prompt of an arm, or of a planner beside it, or in both."""
    into = [n for n in case["nodes"] if n["name"] in ("see", "think", "hears")]
    if case["nodes"][0]["kind"] == "memory_load" or r.random() < 0.5:
        return
    for i, prompt in enumerate(r.sample(into, min(len(into), r.choice([1, 1, 2])))):
        if prompt["name"] != "hears":  # which comes behind the text that it waits for
            prompt["after"] = "recall%d" % i
        if prompt["name"] == "think":
            prompt["template"] = "facts"
        case["nodes"].append({"kind": "memory_load", "name": "recall%d" % i, "model": prompt["model"], "reads": ["past"],
                              "from": "mem", "into": prompt["writes"]})
    said = sorted(streams(case))
    if said and r.random() < 0.5:
        case["nodes"].append({"kind": "remember", "name": "keep", "reads": [r.choice(said)], "into": "mem"})


def sessions(r, case):
    """Robots that share the launches of the real runs: few slots."""
    return 1 if case["slots"] > 4 or r.random() < 0.5 else r.choice([2, 3, 4])


def scenario(r, case):
    asked = [n["name"] for n in case["nodes"]
             if n["kind"] in ("decode", "score") and n["spawn"].text == "on_request()"]
    s = {"schema": 1, "frames": FRAMES, "clock": r.choice(["saturated", "paced"])}
    s["arrivals"] = [{"frame": r.randrange(FRAMES // 2), "node": r.choice(asked)} for _ in range(r.randint(0, 8))] \
        if asked else []
    s["arrivals"].sort(key=lambda a: a["frame"])
    s["cancel"] = [{"frame": r.randrange(FRAMES), "request": r.randrange(12)} for _ in range(r.randint(0, 4))]
    s["cancel"].sort(key=lambda c: c["frame"])
    s["eos"] = {str(r.randrange(12)): r.randint(1, 3) for _ in range(r.randint(0, 3))}
    s["instruction"] = [{"frame": f} for f in sorted(r.sample(range(1, FRAMES), r.randint(0, 3)))]
    s["late"] = [{"frame": f, "us": 30000} for f in sorted(r.sample(range(1, FRAMES), r.randint(0, 2)))]
    return s


# --- what must hold -------------------------------------------------------------------------------


def waits(case):
    """Beside hard nodes the default plan decodes nothing, and few policies give slices to a prefill."""
    prefills = sum(n["kind"] == "prefill" for n in case["nodes"])
    acts = any(n["kind"] in ("action", "advance") for n in case["nodes"])
    return acts and (case["policy"] == "default" or (prefills > 1 and case["policy"] not in ("chaos", "fill")))


def take(e, held, owners):
    """Regions of a prefill are taken and freed, what a request has of its own is taken and removed."""
    request = e.get("request")
    if e["op"] in ("alloc", "fork") and request is not None:
        if e["kv"] in owners.setdefault(request, set()):
            return "request %d takes keys twice" % request
        owners[request].add(e["kv"])
    elif e["op"] == "remove":
        if e["kv"] not in owners.get(request, set()):
            return "keys of request %d are removed, but it has none" % request
        owners[request].remove(e["kv"])
    elif e["op"] in ("alloc", "free"):
        held[e["kv"]] = held.get(e["kv"], 0) + (1 if e["op"] == "alloc" else -1)
        if held[e["kv"]] < 0:
            return "more of '%s' is freed than was taken" % e["kv"]
    return None


class Judge:
    """Looks at the events of a trace, one after the other; each step gives what is wrong, or None."""

    def __init__(self, case):
        self.case = case
        left = [n["writes"] for n in case["nodes"] if n["kind"] == "prefill" and "when" in n]
        self.optional = {n["name"] for n in case["nodes"]  # a policy must ask for them, or for what they wait for
                         if "when" in n or prefix_of("of_" + str(n.get("kv")).removeprefix("of_")) in left}
        self.born, self.node, self.admitted, self.ended = {}, {}, set(), {}
        self.held, self.owners, self.removed = {}, {}, set()
        self.kept = {}  # of a resource whose texts actions read: the last finished request of each node
        self.texts = {n["kv"] for n in case["nodes"] if n["kind"] == "action" and "or_kv" in n}
        self.stands = {n["name"]: n.get("kv") for n in case["nodes"]}
        self.actions = {n["name"] for n in case["nodes"] if n["kind"] == "action"}
        self.advance, self.newest = {n["name"] for n in case["nodes"] if n["kind"] == "advance"}, {}
        # of a text on a partition two launches: beside the frame, and behind a prefix of its own
        self.beside = {n["name"] for n in case["nodes"] if n["kind"] == "decode" and "partition" in n}
        self.running, self.released, self.made = collections.Counter(), set(), {}
        self.frame = -1  # of the newest session; each has its own
        self.frames, self.rings = {}, {}

    def request(self, e, kind):
        q = e.get("request")
        if kind == "arrive":
            if q in self.born:
                return "request %d arrives twice" % q
            self.born[q], self.node[q] = e["frame"], e["node"]
        if kind in ("tokens", "finish", "shed") and q in self.ended:
            return "request %d has an event %s behind its end" % (q, kind)
        if kind in ("tokens", "finish") and q not in self.admitted:
            return "request %d has %s without a slot" % (q, kind)
        if kind == "admit":
            self.admitted.add(q)
        if kind == "finish" and e["tokens"] and self.stands[self.node[q]] in self.texts:  # without tokens there are no keys
            self.kept[self.node[q]] = q
        if kind in ("finish", "shed", "refuse") or (kind == "cancel" and e["live"]):
            self.ended[q] = kind
        return None

    def ring(self, e):
        """Sequences of a session in a ring: in, and out by an action or given up."""
        inside = self.rings.setdefault((e["kv"], e.get("session")), [])
        if e["op"] == "alloc":
            inside.append(e["request"])
        elif e["op"] in ("evict", "flush"):
            for q in e.get("requests", [e.get("request")]):
                if q not in inside:
                    return "sequence %d of '%s' leaves, but it is not there" % (q, e["kv"])
                inside.remove(q)
        most = self.case["rings"][e["kv"]]["stages"]
        return "%d sequences are in '%s', of %d stages" % (len(inside), e["kv"], most) if len(inside) > most else None

    def left(self, e):
        of = (e.get("session"), e["node"])
        if e["node"] in self.advance:
            newest = self.newest.get(of, -1)
            self.newest[of] = e["request"]
            if e["request"] <= newest:
                return "the action of frame %d leaves '%s' behind that of %d" % (e["request"], e["node"], newest)
        elif (e["frame"], of) in self.released:
            return "actions of '%s' in frame %d leave twice" % (e["node"], e["frame"])
        self.released.add((e["frame"], of))
        return None

    def launch(self, e, kind):
        key = (e["node"], e.get("request"))
        most = 1 + (e["node"] in self.beside)
        if self.running[key] == (most if kind == "start" else 0):
            return "'%s' has %s where it must not" % (e["node"], kind)
        self.running[key] += 1 if kind == "start" else -1
        if kind == "end" and e["node"] in self.actions:
            self.made[e["node"]] = self.frame
        return None

    def step(self, e):
        kind = e["event"]
        if kind == "frame":
            if e["frame"] <= self.frames.get(e.get("session"), -1):
                return "frame %d comes behind %d" % (e["frame"], self.frames[e.get("session")])
            self.frame = self.frames[e.get("session")] = e["frame"]
        if kind in ("start", "end"):
            return self.launch(e, kind)
        if kind == "release":
            return self.left(e)
        if kind == "frame_end":
            for node, frame in self.made.items():
                if frame == self.frame and (frame, (e.get("session"), node)) not in self.released:
                    return "actions of '%s' in frame %d do not leave" % (node, frame)
        if kind == "kv" and e["kv"] in self.case.get("rings", {}):
            return self.ring(e)
        if kind in ("tokens", "finish") and (e.get("node") in self.advance or "requests" in e):
            return None  # of sequences in rings
        if kind == "kv":
            if e["op"] == "remove":
                self.removed.add(e["request"])
            return take(e, self.held, self.owners)
        return self.request(e, kind)

    def end(self):
        alive = {q for q in self.born if q not in self.ended}
        for q in sorted(alive):
            if q not in self.admitted:
                return "request %d is neither admitted nor refused" % q
            if not waits(self.case) and self.node[q] not in self.optional and self.frame - self.born[q] > OLD:
                return "request %d of frame %d is forgotten" % (q, self.born[q])
        if any(self.running.values()):
            return "'%s' does not end" % min(node for (node, _), n in self.running.items() if n)
        if self.removed & alive:
            return "keys of request %d are removed, but it has not ended" % min(self.removed & alive)
        held = {q for q, kvs in self.owners.items() if kvs} - set(self.kept.values())
        if held - alive:
            return "keys of request %d are held behind its end" % min(held - alive)
        for kv, count in self.held.items():
            if count > self.case.get("together", 1) + len(alive):
                return "%d regions of '%s' are held at the end by %d requests" % (count, kv, len(alive))
        if (self.actions or self.advance) and not self.released:
            return "no actions leave"
        return None


def judge(events, case):
    """What is wrong with a trace, or None."""
    j = Judge(case)
    for e in events:
        wrong = j.step(e)
        if wrong:
            return wrong
    return j.end()


class Runner:
    def __init__(self, program, work):
        self.program = os.path.abspath(program)
        self.root = os.getcwd()
        self.work = work
        self.seen = {"events": 0, "chunks": 0, "tokens": 0}  # what was looked at

    def tectum(self, verb, case, *args):
        path = os.path.join(self.work, "pipeline.lua")
        with open(path, "w") as f:
            f.write(text_of(case))
        try:
            done = subprocess.run([self.program, verb, "--root", self.root, "--random-weights", str(case["seed"]),
                                   "--size", "tiny", "--policy", case["policy"], *args, path], cwd=self.work,
                                  capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return "it does not end", ""
        over = "captures, the most is" in done.stderr  # as many graphs as a pipeline may have, unless it says more
        if (done.returncode == 3 and "error[E" in done.stderr) or "no node is left" in done.stderr or over:
            raise Refused(done.stderr)
        if done.returncode:
            return "exit code %d: %s" % (done.returncode, done.stderr.strip()[:300]), ""
        return None, done.stdout

    def virtual(self, case):
        case = copy.deepcopy(case)
        for ring in case.get("rings", {}).values():
            del ring["pack"], ring["shift"]  # what copies take is in a file of costs alone
        with open(os.path.join(self.work, "scenario.json"), "w") as f:
            json.dump(case["scenario"], f)
        wrong, _ = self.tectum("simulate", case, "--launch-ms", "2", "--scenario", "scenario.json", "--trace",
                               "trace.jsonl")
        if wrong:
            return wrong
        with open(os.path.join(self.work, "trace.jsonl")) as f:
            events = [json.loads(line) for line in f]
        self.seen["events"] += len(events)
        return judge(events, case)

    def run(self, case, drawn, *how):
        with open(os.path.join(self.work, "inputs.jsonl"), "w") as f:
            f.writelines("null\n" if i in case["missing"] else "{}\n" for i in range(8))
        return self.tectum("run", case, "--random-inputs", str(drawn), "--inputs", "inputs.jsonl", "-n", "8", "--drain",
                           "--threads", "1", "--format", "json", *how)

    def real(self, case):
        said = []
        case = dict(copy.deepcopy(case), policy="chaos", together=case["sessions"])
        for node in case["nodes"]:
            node.pop("when", None)  # chaos never asks for a node, so its texts would not end
            if node["kind"] in ("decode", "score") and "soft" in getattr(node.get("deadline"), "text", ""):
                node.pop("deadline")  # what a busy machine gives up depends on the time
            elif node["kind"] == "action":
                node.pop("spawn", None)  # a rate needs a robot that says how many actions it carries out
        for how in ([], ["--interpret"]):
            wrong, out = self.run(case, 1, *how)
            if wrong:
                return wrong
            said.append(results(out))
        self.seen["chunks"] += len(said[0][0])
        self.seen["tokens"] += sum(len(tokens) for tokens in said[0][1].values())
        if said[0][0] != said[1][0]:
            return "actions are not the interpreter's"
        if said[0][1] != said[1][1]:
            return "texts are not the interpreter's"
        # a text that no frame waits for is read when a policy has made it, which is another time
        soon = all(n.get("after") == "says" for n in case["nodes"] if n["kind"] == "prefill" and n["reads"][-1] == "says")
        for s in range(case["sessions"] if "rings" in case and soon else 0):
            wrong, out = self.run(dict(case, together=1), 1 + s)
            if wrong:
                return wrong
            if results(out, s)[0] != [f for f in said[0][0] if f[0] == s]:
                return "actions of session %d are not those that it has alone" % s
        return None


def results(out, session=0):
    """Actions of each frame and session (of one: that is `session`), those that left before them too; texts."""
    frames = [json.loads(line) for line in out.splitlines()]
    text = {}
    for f in frames:
        for node, said in (f.get("text") or {}).items():
            for t in said:
                text.setdefault((node, t["request"]), []).extend(t.get("tokens") or [])
    earlier = [[(e["seen"], e["actions"]) for e in f.get("earlier", [])] for f in frames]
    return [(f.get("session", session), f["actions"], more) for f, more in zip(frames, earlier) if f.get("actions")], text


# --- making a failing one smaller -----------------------------------------------------------------


def smaller(case):
    """Every case with one thing less."""
    for i in range(len(case["nodes"])):
        less = copy.deepcopy(case)
        del less["nodes"][i]
        yield less
    for i, node in enumerate(case["nodes"]):
        for key in ("prompt", "deadline", "supersede", "temperature", "top_k", "when", "partition", "spawn", "ends",
                    "mean", "draft"):
            if key in node:
                less = copy.deepcopy(case)
                del less["nodes"][i][key]
                yield less
        if len(node.get("reads", [])) > 1:
            less = copy.deepcopy(case)
            del less["nodes"][i]["reads"][0]
            yield less
        if "or_kv" in node:
            less = copy.deepcopy(case)
            less["nodes"][i]["kv"] = less["nodes"][i].pop("or_kv")
            yield less
        if "after" in node and node["kind"] in ("action", "prefill"):
            less = copy.deepcopy(case)
            del less["nodes"][i]["after"]
            yield less
    for key in ("arrivals", "cancel", "instruction", "late", "missing"):
        for i in range(len(case["scenario"][key])):
            less = copy.deepcopy(case)
            del less["scenario"][key][i]
            yield less
    if case["policy"] != "default":
        yield dict(copy.deepcopy(case), policy="default")
    if case["missing"]:
        yield dict(copy.deepcopy(case), missing=case["missing"][1:])
    if case["sessions"] > 1:
        yield dict(copy.deepcopy(case), sessions=case["sessions"] - 1)


def kind_of(wrong):
    return "".join(c for c in wrong or "" if not c.isdigit())


def shrink(case, fails):
    wrong = kind_of(fails(case))
    tries = 0
    progress = True
    while progress and tries < 60:
        progress = False
        for less in smaller(case):
            tries += 1
            try:
                if kind_of(fails(less)) == wrong:
                    case, progress = less, True
                    break
            except Refused:
                pass
    return case


def keep(folder, seed, case, wrong):
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, "seed_%d" % seed)
    with open(name + ".lua", "w") as f:
        f.write("-- %s (policy %s)\n%s" % (wrong.split("\n")[0], case["policy"], text_of(case)))
    with open(name + ".json", "w") as f:
        json.dump(case["scenario"], f)
    return name + ".lua"


def many(runner, count, first, fails, what, folder):
    """Run seeds; how many did, and what was wrong."""
    ran = refused = 0
    bad = []
    for seed in range(first, first + count):
        case = draw(seed)
        try:
            wrong = fails(case)
        except Refused as e:
            refused += 1
            room = ("E072", "captures, the most is")
            if not any(word in str(e) for word in room):
                bad.append("%s seed %d: not valid: %s" % (what, seed, str(e).strip()[:400]))
            continue
        ran += 1
        if wrong:
            least = shrink(case, fails)
            bad.append("%s seed %d: %s: %s" % (what, seed, wrong, keep(folder, seed, least, fails(least) or wrong)))
            if len(bad) >= 10:
                break
    return ran, refused, bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--virtual", type=int, default=60)
    parser.add_argument("--real", type=int, default=8)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--keep", default="build/random_graphs")
    o = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        runner = Runner(o.program, work)
        parts = ((o.virtual, runner.virtual, "virtual"), (o.real, runner.real, "real"))
        for n, (count, fails, what) in enumerate(parts):
            ran, refused, bad = many(runner, count, o.first, fails, what, o.keep)
            for line in bad:
                print("# " + line.replace("\n", "\n# "))
            used = ["events"] if fails == runner.virtual else ["chunks", "tokens"]
            good = not bad and ran * 2 >= count and (count == 0 or all(runner.seen[key] for key in used))
            failed += not good
            print("%sok %d - %s: %d random graphs hold, %d are refused; %s" % (
                "" if good else "not ", n + 1, what, ran - len(bad), refused,
                ", ".join("%d %s" % (runner.seen[key], key) for key in used)))
    print("1..2")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
