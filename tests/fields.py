"""fields.py - does every field of a pipeline file have a reader?

For each field of graph/load/fields.def and each field of a robot's description there is one line
below: a shipped pipeline, a change of that field alone, and a verb whose output must differ with it:

    check      what is said of the file: errors, warnings, bytes
    commands   the compiled commands
    simulate   the events of a virtual clock; chaos: with random decisions; skip NODE: with a policy
               that leaves the node out
    run        the actions and texts of four frames of random inputs, ring: of 14; facts, five: of
               two frames with a memory, start: of one; recompute: the same under a policy that asks for all

or TEST and a test of what depends on time or on a server, with the word that it must have,
or LABEL and the reason why nothing reads it. A field without a line fails, so does a line without a
difference. Names and references have rules of their own: a name must be unique, and a reference to
something that is not there is an error (E021).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEMO, MEMORY = "demo_metaworld.lua", "demo_memory.lua"
ARM = "planner_and_arm.lua"
SAID = "graphs/g18_answer_is_remembered.lua"
EVERYTHING = "graphs/g25_everything.lua"
SPECULATION = "graphs/g05_speculation.lua"
MANY = "graphs/g24_many_robots.lua"
NEWEST = "graphs/g08b_newest_subtask.lua"
STREAM = "graphs/g13_plan_is_prompt.lua"
TWICE = "graphs/g23_two_levels_of_one_model.lua"
PARTS = "pi05_libero_parallel.lua"
ALOHA = "pi05_aloha.lua"
SKILLS = "qwen_skills.lua"
RING = "openvla_ring.lua"
RECALL = "nodes = { memory_load { name = 'recall', %s } }"
PART = "recompute = { first = 0.3, decay = 0.9, floor = 0 }"  # else all is computed anew
MOST = "recompute = { first = 0.6, decay = 0.8, floor = 0 }"
FACTS = [
    {"goal": "fetch:fork", "memory": {"put": {
        "fridge": "{position:kitchen,state:closed,object:fridge}\n",
        "cup": "{position:fridge,state:clean,object:cup}\n",
        "fork": "{position:cup,state:dirty,object:fork}\n"}}},
    {"goal": "fetch:fork", "memory": {"put": {"cup": "{position:table,state:clean,object:cup}\n"}}},
]
FIVE = [  # two ways to score segments choose facts of other lengths here
    {"goal": "fetch:fork", "memory": {"put": {
        "fridge": "{position:kitchen,state:closed,object:fridge}\n",
        "cup": "{position:kitchen,state:closed,object:cup}\n",
        "fork": "{position:fork,state:is dirty,object:fork}\n",
        "plate": "{position:fridge,state:is dirty,object:plate}\n",
        "apple": "{position:table,state:is dirty,object:apple}\n"}}},
    FACTS[1],
]
RANDOM = ["--random-weights", "1", "--size", "tiny"]

# A field of a node, input or resource is changed by its name; the others by a table.
FIELDS = {
    "pipeline.name": ("LABEL", "reports are headed by it"),
    "pipeline.schema": ("check", DEMO, "schema = 2"),
    "pipeline.seed": ("run", DEMO, "seed = 7"),
    "pipeline.models": ("check", DEMO, "models = { model { name = 'x', arch = 'pi05' } }"),
    "pipeline.robot": ("check", DEMO, "robot = 'robots/libero.lua'"),
    "pipeline.robots": ("check", DEMO, "robots = { arm = 'robots/libero.lua' }"),
    "pipeline.variant": ("check", ALOHA, "variant = 'nothing'"),
    "pipeline.frame": ("check", DEMO, "frame = 1"),
    "pipeline.inputs": ("check", DEMO, "inputs = { text { name = 'more', max_tokens = 4 } }"),
    "pipeline.resources": ("check", DEMO, "resources = { kv.frame { name = 'obs', tokens = 65 } }"),
    "pipeline.nodes": ("commands", DEMO, "nodes = { without 'talk' }"),
    "pipeline.partitions": ("check", DEMO, "partitions = { sm { name = 'a', share = 2 } }"),
    "pipeline.capture": ("check", DEMO, "capture = { batch = { 1, 2, 3, 4, 5, 6, 7, 8 } }"),
    "pipeline.memory": ("check", DEMO, "memory = memory { device = '1KiB' }"),
    "pipeline.policy": ("simulate", DEMO, "policy = use { name = 'isolated' }"),
    "pipeline.guard": ("simulate", DEMO, "guard = guard { fallback = 'nothing' }"),
    "model.arch": ("check", DEMO, "model = { arch = 'nothing' }"),
    "model.weights": ("check", DEMO, "model = { weights = 'nothing' }"),
    "model.adapter": ("check", DEMO, "model = { adapter = 'nothing' }"),
    "model.embodiment": ("check", "groot_gr1.lua", "model = { embodiment = 'nothing' }"),
    "model.dtype": ("run", DEMO, "model = { dtype = 'f32' }"),
    "model.quantize": ("check", DEMO, "model = { quantize = 'int8' }"),
    "model.quantize_head": ("check", DEMO, "model = { quantize_head = 'int8' }"),
    "model.round": ("run", DEMO, "model = { round = 'bf16' }"),
    "model.where": ("check", DEMO, "model = { where = 'cuda:99' }"),
    "frame.period_ms": ("check", DEMO, "frame = { period_ms = 250 }"),
    "frame.clock": ("LABEL", "whoever runs the pipeline ticks: `run` with a timer, `serve` when an observation comes"),
    "frame.overrun": ("LABEL", "has one value"),
    "frame.sessions": ("simulate", DEMO, "frame = { sessions = 2 }"),
    "frame.gather_ms": ("TEST", "tests/sessions.t", "frame.gather_ms=8"),
    "image.h": ("check", DEMO, "inputs = { image { name = 'observation/image', h = 63 } }"),
    "image.w": ("check", DEMO, "inputs = { image { name = 'observation/image', w = 63 } }"),
    "image.dtype": ("LABEL", "a request may bring either type"),
    "image.slot": ("check", ALOHA, "inputs = { image { name = 'cam_high', slot = 'nothing' } }"),
    "image.optional": ("check", DEMO, "inputs = { image { name = 'observation/image', optional = true } }"),
    "tensor.shape": ("check", DEMO, "inputs = { tensor { name = 'observation/state', shape = { 5 } } }"),
    "tensor.dtype": ("check", DEMO, "inputs = { tensor { name = 'observation/state', dtype = 'i32' } }"),
    "text.max_tokens": ("commands", DEMO, "inputs = { text { name = 'prompt', max_tokens = 20 } }"),
    "text.default": ("start", MEMORY, "inputs = { text { name = 'goal', default = 'fetch:cup' } }"),
    "segments.max_segments": ("check", MEMORY, "inputs = { segments { name = 'memory', max_segments = 40 } }"),
    "segments.tokens_each": ("check", SAID, "inputs = { segments { name = 'memory', tokens_each = 3 } }"),
    "kv.frame.tokens": ("check", DEMO, "resources = { kv.frame { name = 'obs', tokens = 60 } }"),
    "kv.requests.tokens": ("check", DEMO, "resources = { kv.requests { name = 'lang', tokens = 65 } }"),
    "kv.requests.slots": ("check", DEMO, "resources = { kv.requests { name = 'lang', slots = 1 } }"),
    "kv.ring.tokens": ("check", RING, "resources = { kv.ring { name = 'ring', tokens = 400 } }"),
    "kv.ring.stages": ("check", RING, "resources = { kv.ring { name = 'ring', stages = 3 } }"),
    "kv.ring.shift": ("commands", RING, "resources = { kv.ring { name = 'ring', shift = 'device_copy' } }"),
    "kv.ring.pack": ("commands", RING, "resources = { kv.ring { name = 'ring', pack = 'gather' } }"),
    "kv.ring.on_change": ("ring", RING, "resources = { kv.ring { name = 'ring', on_change = 'keep' } }"),
    "kv.segments.tokens": ("check", MEMORY, "resources = { kv.segments { name = 'mem', tokens = 8 } }"),
    "buffer.shape": ("check", DEMO, "resources = { buffer { name = 'chunk', shape = { 8, 4 } } }"),
    "buffer.dtype": ("check", DEMO, "resources = { buffer { name = 'chunk', dtype = 'f64' } }"),
    "tiers.gpu": ("check", MEMORY, "resources = { kv.segments { name = 'mem', tiers = { gpu = '1MiB' } } }"),
    "tiers.host": ("check", MEMORY, "resources = { kv.segments { name = 'mem', tiers = { host = '32MiB' } } }"),
    "tiers.disk": ("TEST", "tests/memory_log.c", "max_bytes"),
    "kv.segments.stable_steps": ("TEST", "tests/groups.c", "stable_steps"),
    "kv.segments.threshold": ("TEST", "tests/groups.c", "threshold"),
    "kv.segments.remote_ms": ("TEST", "tests/memory_remote.c", "remote_ns"),
    "kv.segments.store": ("facts", MEMORY, "resources = { kv.segments { name = 'mem', store = '/nothing/there' } }"),
    "kv.segments.remote": ("facts", MEMORY, "resources = { kv.segments { name = 'mem', remote = 'nothing' } }"),
    "kv.segments.encoder": ("facts", MEMORY, "resources = { kv.segments { name = 'mem', encoder = 'nothing' } }"),
    "kv.segments.tiers": ("check", MEMORY, "resources = { kv.segments { name = 'mem', tiers = { host = '1MiB' } } }"),
    "prefill.reads": ("commands", TWICE, "nodes = { prefill { name = 'look', reads = { 'observation/image', 'goal' } } }"),
    "prefill.template": ("facts", MEMORY, "nodes = { prefill { name = 'ask', template = 'plain' } }"),
    "prefill.spawn": ("simulate", TWICE, "nodes = { prefill { name = 'look', spawn = every(3) } }"),
    "prefill.when": ("skip think", ARM, "nodes = { prefill { name = 'think', when = policy() } }"),
    "action.kv": ("check", DEMO, "nodes = { action { name = 'act', kv = prev 'obs' } }"),
    "action.or_kv": ("check", NEWEST, "nodes = { action { name = 'act', or_kv = without 'or_kv' } }"),
    "action.steps": ("commands", DEMO, "nodes = { action { name = 'act', steps = 3 } }"),
    "action.prefix": ("check", DEMO, "nodes = { action { name = 'act', prefix = 'prompt' } }"),
    "action.out": ("check", DEMO, "nodes = { action { name = 'act', out = 'obs' } }"),
    "action.deadline": ("simulate", DEMO, "nodes = { action { name = 'act', deadline = hard { ms = 3 } } }"),
    "action.spawn": ("run", DEMO, "nodes = { action { name = 'act', spawn = every(2) } }"),
    "action.when": ("skip act", DEMO, "nodes = { action { name = 'act', when = policy(), deadline = without 'deadline' } }",
                    "nodes = { action { name = 'act', deadline = without 'deadline' } }"),
    "decode.kv": ("check", DEMO, "nodes = { decode { name = 'talk', kv = 'obs' } }"),
    "decode.max_tokens": ("simulate", DEMO, "nodes = { decode { name = 'talk', max_tokens = 5 } }"),
    "decode.spawn": ("simulate", DEMO, "nodes = { decode { name = 'talk', spawn = every(3) } }"),
    "decode.supersede": ("simulate", DEMO, "nodes = { decode { name = 'talk', supersede = true } }"),
    "decode.temperature": ("run", DEMO, "nodes = { decode { name = 'talk', temperature = 50 } }"),
    "decode.top_k": ("run", DEMO, "nodes = { decode { name = 'talk', temperature = 50, top_k = 2 } }",
                     "nodes = { decode { name = 'talk', temperature = 50 } }"),
    "decode.top_p": ("run", DEMO, "nodes = { decode { name = 'talk', temperature = 50, top_p = 0.01 } }",
                     "nodes = { decode { name = 'talk', temperature = 50 } }"),
    "decode.choices": ("run", DEMO, "nodes = { decode { name = 'talk', choices = { 'yes', 'no' } } }"),
    "decode.stop": ("run", DEMO, "nodes = { decode { name = 'talk', stop = 'e' } }"),
    "action.guide": ("check", DEMO, "nodes = { action { name = 'act', guide = { previous = 'nothing' } } }"),
    "guide.previous": ("TEST", "tests/guided.t", "prev_chunk_left_over"),
    "guide.schedule": ("TEST", "tests/guided.t", "schedule=linear"),
    "guide.max_guidance_weight": ("TEST", "tests/guided.t", "max_guidance_weight=1"),
    "guide.execution_horizon": ("TEST", "tests/guided.t", "execution_horizon=4"),
    "guide.delay": ("TEST", "tests/guided.t", "delay = 2"),
    "guide.delay_input": ("TEST", "tests/guided.t", "delay_input"),
    "decode.draft": ("commands", SPECULATION, "nodes = { decode { name = 'answer', draft = without 'draft' } }"),
    "draft.tokens": ("commands", SPECULATION, "nodes = { decode { name = 'answer', draft = { model = 'small', tokens = 2 } } }"),
    "decode.prompt": ("check", DEMO, "nodes = { decode { name = 'talk', prompt = 'prompt' } }"),
    "decode.out": ("check", DEMO, "nodes = { decode { name = 'talk', out = 'chunk' } }"),
    "decode.deadline": ("simulate", DEMO, "nodes = { decode { name = 'talk', deadline = soft { ms = 20, on_miss = 'shed' } } }"),
    "decode.pack_with": ("check", RING, "nodes = { decode { name = 'advance', pack_with = without 'pack_with' } }"),
    "decode.when": ("skip talk", DEMO, "nodes = { decode { name = 'talk', when = policy() } }"),
    "score.kv": ("check", SKILLS, "nodes = { score { name = 'choose', kv = 'answers' } }"),
    "score.candidates": ("commands", SKILLS, "nodes = { score { name = 'choose', candidates = { 'a', 'b' } } }"),
    "score.ends": ("run", SKILLS, "nodes = { score { name = 'choose', ends = true } }"),
    "score.mean": ("run", SKILLS, "nodes = { score { name = 'choose', mean = true } }"),
    "score.spawn": ("simulate", SKILLS, "nodes = { score { name = 'choose', spawn = every(3) } }"),
    "score.supersede": ("chaos", SKILLS, "nodes = { score { name = 'choose', supersede = false } }"),
    "score.out": ("check", SKILLS, "nodes = { score { name = 'choose', out = 'nothing' } }"),
    "score.deadline": ("chaos", SKILLS, "nodes = { score { name = 'choose', deadline = soft { ms = 1, on_miss = 'shed' } } }"),
    "score.when": ("skip choose", SKILLS, "nodes = { score { name = 'choose', when = policy() } }"),
    "memory_load.overlap": ("TEST", "tests/memory_prefetch.c", "overlap"),
    "memory_load.select": ("facts", MEMORY, RECALL % ("select = 'reuse', " + PART), RECALL % PART),
    "memory_load.scoring": ("five", MEMORY, RECALL % ("scoring = 'paper', " + MOST), RECALL % MOST),
    "memory_load.positions": ("facts", MEMORY, RECALL % "select = 'reuse', positions = 'local0'",
                              RECALL % "select = 'reuse'"),
    "memory_load.order": ("facts", MEMORY, RECALL % "order = 'best_first'"),
    "memory_load.share": ("facts", MEMORY, RECALL % "select = 'cacheblend', share = 0.9",
                          RECALL % "select = 'cacheblend'"),
    "memory_load.check_layer": ("facts", MEMORY, RECALL % "select = 'cacheblend', check_layer = 3",
                                RECALL % "select = 'cacheblend'"),
    "memory_load.first_tokens": ("facts", MEMORY, RECALL % "select = 'epic', first_tokens = 1",
                                 RECALL % "select = 'epic'"),
    "memory_load.recompute": ("facts", MEMORY, RECALL % PART),
    "recompute.first": ("facts", MEMORY, RECALL % "recompute = { first = 0.3, floor = 0 }",
                        RECALL % "recompute = { first = 1, floor = 0 }"),
    "recompute.decay": ("facts", MEMORY, RECALL % "recompute = { first = 1, decay = 0.3, floor = 0 }",
                        RECALL % "recompute = { first = 1, decay = 0.9, floor = 0 }"),
    "recompute.floor": ("facts", MEMORY, RECALL % "recompute = { decay = 0.1, floor = 1 }",
                        RECALL % "recompute = { decay = 0.1, floor = 0 }"),
    "memory_load.spawn": ("check", EVERYTHING, "nodes = { memory_load { name = 'recall', spawn = every(3) } }"),
    "remember.model": ("check", EVERYTHING, "nodes = { remember { name = 'keep', model = 'arm' } }"),
    "remember.reads": ("check", SAID, "nodes = { remember { name = 'keep', reads = { 'goal' } } }"),
    "remember.into": ("check", SAID, "nodes = { remember { name = 'keep', into = 'ctx' } }"),
    "remember.key": ("TEST", "tests/remember.c", "key"),
    "hard.ms": ("simulate", DEMO, "nodes = { action { name = 'act', deadline = { ms = 3 } } }"),
    "hard.on_miss": ("TEST", "tests/action_output.c", "on_miss"),
    "hard.limit": ("TEST", "tests/action_output.c", "limit"),
    "hard.decay_actions": ("TEST", "tests/action_output.c", "decay_actions"),
    "soft.ms": ("simulate", DEMO, "nodes = { decode { name = 'talk', deadline = { ms = 20 } } }"),
    "soft.on_miss": ("simulate", DEMO, "nodes = { decode { name = 'talk', deadline = { ms = 20, on_miss = 'continue' } } }",
                     "nodes = { decode { name = 'talk', deadline = { ms = 20 } } }"),
    "sm.share": ("check", PARTS, "partitions = { sm { name = 'rt', share = 3 } }"),
    "sm.priority": ("check", PARTS, "partitions = { sm { name = 'rt', priority = 'high' } }"),
    "capture.batch": ("commands", DEMO, "capture = { batch = { 1, 8 } }"),
    "capture.k": ("simulate", DEMO, "capture = { k = { 1 } }"),
    "capture.depth": ("ring", RING, "capture = { depth = { 1 } }"),
    "capture.sessions": ("commands", MANY, "capture = { sessions = { 1, 4 } }"),
    "capture.ratio": ("recompute", MEMORY, "capture = { ratio = { 0.1 } }"),
    "capture.slices": ("commands", ARM, "capture = { slices = 1 }"),
    "capture.max_graphs": ("check", DEMO, "capture = { max_graphs = 2 }"),
    "capture.on_miss": ("LABEL", "has one value"),
    "memory.device": ("check", DEMO, "memory = memory { device = '1KiB' }"),
    "memory.host": ("check", DEMO, "memory = memory { host = '1KiB' }"),
    "use.name": ("simulate", DEMO, "policy = { name = 'isolated' }"),
    "use.params": ("simulate", DEMO, "policy = { params = { k = 2 } }"),
    "guard.fallback": ("simulate", DEMO, "guard = guard { fallback = 'nothing' }"),
    "guard.soft_us": ("TEST", "tests/policy_guard.c", "soft_us"),
    "guard.hard_us": ("TEST", "tests/policy_guard.c", "hard_us"),
    "guard.heap": ("check", DEMO, "guard = guard { heap = 16384 }"),
    "guard.strikes": ("TEST", "tests/policy_guard.c", "strikes"),
    "guard.window_frames": ("TEST", "tests/policy_guard.c", "window_frames"),
}

# Names of one kind everywhere: what refers to them, and where it is tested that they are right.
REFERENCES = {"model", "after", "partition", "share_prefix", "writes", "reads", "from", "into", "name"}

# Changes of the demo's robot, by table and field; a third part is what both sides have.
ROBOT = {
    "robot.name": ("LABEL", "messages name the robot so"),
    "robot.variant": ("check", ["variant = 'nothing'"]),
    "robot.variants": ("check", ["variant = 'slow'", "variants = { slow = { execute = 4 } }"]),
    "robot.cameras": ("check", ["cameras = { { slot = 'base_0_rgb', input = 'nothing' } }"]),
    "robot.resize": ("check", ["resize = 'nothing'"]),
    "robot.ignore": ("check", ["ignore = 7"]),
    "robot.state": ("check", ["state = { inputs = { { input = 'observation/state', size = 5 } } }"]),
    "robot.actions": ("run", ["actions = { size = 3 }"]),
    "robot.norm": ("check", ["norm = { mode = 'nothing' }"]),
    "robot.prompt": ("check", ["prompt = { template = 'nothing' }"]),
    "robot.rate_hz": ("check", ["rate_hz = 200"]),
    "robot.execute": ("check", ["execute = 2"]),
    "robot.unknown_cameras": ("check", ["unknown_cameras = 'nothing'"]),
    "robot.metadata": ("LABEL", "clients of a server are told it"),
    "robot.fill": ("check", ["fill = 'nothing'"]),
    "robot.edge": ("check", ["edge = 256"]),
    "robot.middle": ("check", ["middle = 0.95"]),
    "camera.slot": ("check", ["cameras[1].slot = 'nothing'"]),
    "camera.input": ("check", ["cameras[1].input = 'nothing'"]),
    "camera.missing": ("TEST", "tests/observer.c", "observe_masks_or_refuses_missing_cameras"),
    "camera.rotate180": ("run", ["cameras[1].rotate180 = true"]),
    "camera.layout": ("run", ["cameras[1].layout = 'chw'"]),
    "state.inputs": ("check", ["state.inputs = {}"]),
    "state.ops": ("prompt", ["state.ops = { { op = 'multiply', by = -1 } }"]),
    "state.normalised": ("prompt", ["state.normalised = { { op = 'multiply', by = 0.5 } }"]),
    "part.input": ("check", ["state.inputs[1].input = 'nothing'"]),
    "part.size": ("check", ["state.inputs[1].size = 3"]),
    "actions.size": ("run", ["actions.size = 3"]),
    "actions.inputs": ("check", ["actions.inputs = 3"]),
    "actions.decode": ("run", ["actions.decode = { { op = 'multiply', by = 0.5 } }"]),
    "actions.ops": ("run", ["actions.ops = { { op = 'multiply', by = 0.5 } }"]),
    "actions.max_rows": ("run", ["actions.max_rows = 10"]),
    "actions.outputs": ("check", ["actions.outputs = { { name = 'hand', size = 5 } }"]),
    "actions.limits": ("run", ["actions.limits = { max = 0 }"]),
    "actions.relative": ("TEST", "tests/session.c", "a_robot_that_goes_on_moving"),
    "actions.ensemble": ("run", ["actions.ensemble = 0.01"], ["execute = 1"]),
    "output.name": ("TEST", "tests/serve_groot.py", "outputs"),
    "output.size": ("check", ["actions.outputs[1].size = 5"], ["actions.outputs = { { name = 'hand', size = 4 } }"]),
    "limits.min": ("run", ["actions.limits = { min = 0 }"]),
    "limits.max": ("run", ["actions.limits = { max = 0 }"]),
    "limits.max_step": ("run", ["actions.limits = { max_step = 0.001 }"]),
    "limits.on": ("run", ["actions.limits.on = 'stop'"], ["actions.limits = { max = 0 }"]),
    "norm.mode": ("run", ["norm.mode = 'none'"]),
    "norm.asset": ("run", ["norm.asset = 'nothing'"]),
    "norm.eps": ("run", ["norm.eps = 0.5"]),
    "norm.missing": ("TEST", "tests/golden/smolvla/README.md", "statistics under foreign keys -> nothing normalised"),
    "norm.precision": ("TEST", "tests/norm.c", "wide"),
    "prompt.input": ("check", ["prompt.input = 'nothing'"]),
    "prompt.template": ("prompt", ["prompt.template = 'plain'"]),
    "prompt.default": ("TEST", "tests/observer.c", 'CHECK_STR(s.text, "wave")'),
    "prompt.state": ("run", ["prompt.state = false"]),
    "prompt.state_pad_to": ("run", ["prompt.state_pad_to = 6"]),
    "prompt.max_tokens": ("run", ["prompt.max_tokens = 2"]),
    "prompt.truncate": ("prompt", ["prompt.truncate = true"], ["prompt.max_tokens = 2"]),
    "prompt.keep": ("prompt", ["prompt.keep = 'last'"], ["prompt.max_tokens = 6", "prompt.truncate = true"]),
}


class Fields:
    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.root = os.getcwd()
        self.said = {}
        self.checks = 0
        self.failed = 0

    def tectum(self, *args):
        done = subprocess.run([self.program, *args, "--root", self.root], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def frames(self, *args):
        code, out, err = self.tectum("run", "--threads", "1", "--format", "json", *args)
        kept = ("actions", "text", "source", "missed", "earlier", "memory", "in_flight", "filling")
        frames = [json.loads(line) for line in out.splitlines()]
        for f in frames:  # what depends on time would make any two runs differ
            for name in ("waited_us", "choose_us", "late", "remembered_tokens"):
                (f.get("memory") or {}).pop(name, None)
        return code, [{k: f.get(k) for k in kept} for f in frames], err if code else ""

    def output(self, verb, path, random):
        virtual = ("simulate", *random, "-n", "12", "--trace", "trace.jsonl", path)
        if verb == "check":
            return self.tectum("check", path)
        if verb == "commands":
            return self.tectum("graph", "--commands", *random, path)
        if verb == "run":
            return self.frames("--random-inputs", "1", "-n", "4", "--drain", *random, path)
        if verb == "ring":
            return self.frames("--random-inputs", "1", "-n", "14", *random, path)
        if verb == "start":  # an observation without a text, and one with it
            code, out, err = self.frames("--inputs", "start.jsonl", *random, path)
            return code, out, err
        if verb == "prompt":  # what is not there is drawn
            return self.frames("--random-inputs", "1", "--inputs", verb + ".jsonl", path)
        if verb in ("facts", "five"):
            return self.frames("--inputs", verb + ".jsonl", path)
        asks = "D:recompute('recall', { 1 })" if verb == "recompute" else "D:skip('%s', 'a test')" % verb[5:]
        with open("asks.lua", "w") as f:
            f.write("return policy { name = 'asks', api = 1, version = 1, plan = function(S, F, D) %s end }" % asks)
        if verb == "recompute":
            return self.frames("--inputs", "facts.jsonl", "--policy", "./asks.lua", path)
        policy = {"simulate": [], "chaos": ["--policy", "chaos"]}.get(verb, ["--policy", "./asks.lua"])
        code, out, err = self.tectum(*virtual, "--launch-ms", "2", *policy)
        return code, open("trace.jsonl").read() if code == 0 else err

    def compare(self, text, verb, base, change, without=""):
        random = [] if base in (DEMO, MEMORY, SAID) else RANDOM
        said = []
        for what in (without, change):
            key = (verb, base, what)
            if key not in self.said:
                with open("pipeline.lua", "w") as f:
                    f.write('return extend("%s", { name = "fields", %s })\n' % (base, what))
                shutil.rmtree("build", ignore_errors=True)  # with a memory of the run before
                self.said[key] = self.output(verb, "pipeline.lua", random)
            said.append(self.said[key])
        self.ok(said[0] != said[1], "%s: %s" % (text, verb))

    def write_inputs(self):
        for name, frames in (("facts", FACTS), ("five", FIVE), ("start", [{"memory": FACTS[0]["memory"]}]),
                             ("prompt", [{"prompt": "press the button beside the drawer"}])):
            with open(name + ".jsonl", "w") as f:
                f.writelines(json.dumps(frame) + "\n" for frame in frames)

    def ok(self, good, text):
        self.checks += 1
        self.failed += not good
        print("%sok %d - %s" % ("" if good else "not ", self.checks, text))

    def field(self, name, line):
        if line is None:
            self.ok(False, name + " has no line here")
        elif line[0] == "LABEL":
            self.ok(True, "%s: %s" % (name, line[1]))
        elif line[0] == "TEST":
            self.ok(line[2] in open(os.path.join(self.root, line[1])).read(), "%s: %s" % (name, line[1]))
        else:
            self.compare(name, *line)

    def robot(self, name, line):
        if line is None or line[0] in ("LABEL", "TEST"):
            self.field("robot: " + name, line)
            return
        robot = "robot = (function() local r = include 'robots/metaworld.lua'; %s return r end)()"
        both = line[2] if len(line) > 2 else []
        with_it, without = ("".join("r.%s; " % part for part in parts) for parts in (both + line[1], both))
        self.compare("robot: " + name, line[0], DEMO, robot % with_it, robot % without)


def fields_of(root):
    """Names of all fields, as owner.field with the owner's word."""
    words, names = {}, []
    text = open(os.path.join(root, "graph/load/fields.def")).read()
    for kind, args in re.findall(r"^(PLAIN|KIND|FIELD|THINGS)\((.*)", text, re.M):
        parts = [part.strip().strip('"') for part in args.split(",")]
        if kind in ("PLAIN", "KIND"):
            words[parts[0]] = parts[1]
        else:
            names.append("%s.%s" % (words[parts[0]], parts[3 if kind == "FIELD" else 4]))
    return names


def robot_fields(root):
    """Names of all fields of robot_fields.def, as table.field."""
    table, names = None, []
    for kind, name in re.findall(r'^(TABLE|FIELD)\("?(\w+)', open(os.path.join(root, "graph/transform/robot_fields.def")).read(), re.M):
        if kind == "TABLE":
            table = name
        else:
            names.append(table + "." + name)
    return names


def main():
    t = Fields(sys.argv[1])
    names = fields_of(t.root)
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        t.write_inputs()
        for name in names:
            line = FIELDS.get(name)
            if line is None and name.split(".")[-1] in REFERENCES and not name.startswith("pipeline."):
                continue
            t.field(name, line)
        for name in robot_fields(t.root):
            t.robot(name, ROBOT.get(name))
        for name in sorted(set(FIELDS) - set(names)) + sorted(set(ROBOT) - set(robot_fields(t.root))):
            t.ok(False, name + " is no field")
        os.chdir(t.root)
    print("1..%d" % t.checks)
    return t.failed > 0


if __name__ == "__main__":
    sys.exit(main())
