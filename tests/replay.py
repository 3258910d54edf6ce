"""replay.py - recordings of runs that were decided by the clock, run again: the same plans, actions and texts.

The policy `moods` decides by the time of day, so that no two runs of it are alike: requests refused and given up,
steps, slices, groups, private prefills, nodes left out, depths of rings, shares of a memory. A replay that decided
afresh would be another run.
"""

import json
import subprocess
import sys
import threading
import time

from mcap_file import Recording, rewritten
from serve_client import Array
from serve_harness import PROGRAM, SIDE, Server, Servers, check, main, test

WORK = sys.argv[2]
DEMO = "pipelines/demo_metaworld.lua"
SMALL = ["--random-weights", "1", "--size", "tiny", "--random-inputs", "1"]
MOODS = WORK + "/moods.lua"
MOODS_LUA = """
local function below(S, F, n)
  S.x = (S.x ~ F.now_us) * 0x2545F4914F6CDD1D + 0x9E3779B97F4A7C15
  return ((S.x ~ S.x >> 29) >> 8) % n
end
return policy {
  name = "moods", api = 1, version = 1,
  params = { quiet = int { default = 0, min = 0, max = 1 } },
  state = { x = 1 },
  setup = function(S, T)
    S.optional, S.loads, S.rings = {}, {}, T.rings
    for _, name in ipairs(T.nodes) do
      if T.node(name).optional then table.insert(S.optional, name) end
      if T.node(name).kind == "memory_load" then table.insert(S.loads, name) end
    end
  end,
  admit = function(S, F) return below(S, F, 6) > 0, "a mood" end,
  evict = function(S, F) return 1 + below(S, F, F.nreq) end,
  plan = function(S, F, D)
    if F.params.quiet == 1 then return end
    for _, name in ipairs(S.optional) do
      if below(S, F, 4) == 0 then D:skip(name, "a mood") else D:run(name) end
    end
    for i = 1, F.nreq do
      local r = F.req[i]
      if r.fresh and below(S, F, 2) == 0 then D:unshare(i) end
      if below(S, F, 4) == 0 then D:pause(i) else D:decode(i, 1 + below(S, F, r.max)) end
      if below(S, F, 24) == 0 then D:shed(i, "a mood") end
      if r.slices > 0 then D:slices(r.prefill, below(S, F, 6)) end
      D:batch(i, below(S, F, 4))
      D:priority(i, below(S, F, 10))
    end
    for _, ring in ipairs(S.rings) do D:depth(ring, 1 + below(S, F, 8)) end
    for _, name in ipairs(S.loads) do D:recompute(name, { 0.25 * below(S, F, 5) }) end
    for i = 1, F.nseg do if below(S, F, 3) == 0 then D:skip_segment(i) end end
  end,
}
"""
with open(MOODS, "w") as moods_file:
    moods_file.write(MOODS_LUA)


def tectum(*arguments, code=0):
    p = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    check(code is None or p.returncode == code, arguments, p.returncode, p.stdout[-300:], p.stderr[-600:])
    p.stderr = "".join(x for x in p.stderr.splitlines(True) if "no CUDA device" not in x)  # of a build with CUDA
    return p


def record(name, pipeline, *options):
    path = "%s/%s.mcap" % (WORK, name)
    tectum("run", pipeline, *options, "--record", path)
    return path


def again(path, *options, code=0):
    """What the replay counts, and what it says."""
    p = tectum("replay", path, "--format", "json", *options, code=code)
    return json.loads(p.stdout.splitlines()[-1]), p.stderr


def followed(path):
    """Every frame was decided as it was, and ran the same to the same end."""
    j, said = again(path)
    check(j["plans"]["differ"] == j["actions"]["differ"] == j["actions"]["missing"] == j["texts"]["differ"] == 0, j, said)
    check(j["decided"] == {"recorded": j["frames"], "policy": 0} and "policy" not in said, j, said)
    live = {k for k, v in ends_of(path).items() if not v}
    check(j["texts"]["partial"] == len(live), "all that ended did so again, and nothing else", j, live)
    return j


def ends_of(path):
    """Whether each text of a recording has ended."""
    ends = {}
    for topic, messages in Recording(path).messages.items():
        for _, m in messages if topic.startswith("/tectum/text/") else ():
            ends[m["request"]] = ends.get(m["request"], False) or m["done"]
    return ends


def graph(name):
    return "pipelines/graphs/%s.lua" % name


@test
def graphs_decided_by_the_clock_are_run_again_as_they_were():
    anew = {"plans": 0, "actions": 0}
    memories = ("g06_memory_in_controller", "g17_memory_in_partitions", "g18_answer_is_remembered")
    for name in ("g04_two_heads", "g05_speculation", "g07_ring_and_planner", "g08b_newest_subtask", "g12_planner_ranks",
                 "g16_action_may_be_skipped", "g19_two_rings", "g23_two_levels_of_one_model", "g24_many_robots",
                 "g25_everything", *memories):
        empty = ["--set", "resources.mem.store=%s/%s.memory" % (WORK, name)] if name in memories else []
        path = record(name, graph(name), *SMALL, "-n", "12", "--policy", MOODS, *empty)
        j = followed(path)
        check(j["frames"] == 12 and j["plans"]["equal"] >= 12, name, j)
        j, _ = again(path, "--policy", MOODS, code=None)
        check(j["decided"] == {"recorded": 0, "policy": 12}, name, j)
        anew["plans"] += j["plans"]["differ"]
        anew["actions"] += j["actions"]["differ"] + j["actions"]["missing"]
    check(anew["plans"] > 30 and anew["actions"] > 0, "the policy decides otherwise each time, or this shows nothing", anew)


def decisions(path, what):
    """All entries of one list of the recorded decisions."""
    return [x for d in Recording(path).of("/tectum/decisions") for x in d.get(what, [])]


@test
def texts_given_up_in_time_are_given_up_again():
    """Late ones by the clock, refused and evicted ones by the policy, which a replay that is quicker would not have."""
    told = {"late": 0, "refused": 0, "evicted": 0}
    for period, ms, frames in ((40, 4, 20), (40, 2000, 30), (150, 130, 10)):  # of the last none is late where frames follow each other
        path = record("paced", DEMO, *SMALL, "-n", str(frames), "--policy", MOODS, "--clock", "paced", "--set", "frame.period_ms=%d" % period,
                      "--set", "nodes.act.deadline.ms=%d" % (period - 5), "--set", "nodes.talk.deadline.ms=%d" % ms,
                      "--set", "resources.lang.slots=2", "--set", "capture.batch=[1,2]")
        followed(path)
        for what in told:
            told[what] += len(decisions(path, what))
    check(all(told.values()), told)


@test
def shipped_policies_by_measured_times_are_run_again_under_load():
    """A program that computes beside it makes launches take what they do not in the replay."""
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    paths = []
    try:
        for policy in ("slack_k", "fill", "edf"):
            paths.append(record(policy, graph("g13_plan_is_prompt"), *SMALL, "-n", "12", "--policy", policy))
            paths.append(record(policy + "8", graph("g08b_newest_subtask"), *SMALL, "-n", "12", "--policy", policy))
    finally:
        load.kill()
        load.wait()
    for path in paths:
        followed(path)


@test
def a_policy_that_fails_is_run_again_as_what_ran():
    path, policy = WORK + "/fails.mcap", WORK + "/fails.lua"
    with open(policy, "w") as f:
        f.write("return policy { name = 'fails', api = 1, version = 1, plan = function(S, F, D)\n"
                "  for i = 1, F.nreq do D:decode(i, 1 + F.now_us % 5) end\n"
                "  if F.now_us % 2 == 0 then error('a mood') end\nend }\n")
    record("fails", DEMO, *SMALL, "-n", "24", "--policy", policy)
    j = followed(path)
    names = {d["policy"] for d in Recording(path).of("/tectum/decisions")}
    check(j["frames"] == 24 and len(names) == 2, "it failed, and its fallback took over", names)
    check([d["policy"] for d in Recording(path).of("/tectum/decisions")] == [f["policy"] for f in Recording(path).of("/tectum/frames")])


@test
def a_policy_with_state_is_warm_where_it_has_to_decide():
    """It hears of the frames that are followed: where one's decisions are missing it decides as it would have."""
    path, policy = WORK + "/counts.mcap", WORK + "/counts.lua"
    with open(policy, "w") as f:
        f.write("return policy { name = 'counts', api = 1, version = 1, state = { n = 0, told = 0, asked = 0 },\n"
                "  admit = function(S, F) S.asked = S.asked + 1 return S.asked % 5 > 0, 'enough' end,\n"
                "  observe = function(S, F, O) S.told = S.told + 1 end,\n"
                "  plan = function(S, F, D)\n"
                "    S.n = S.n + 1\n"
                "    for i = 1, F.nreq do D:decode(i, 1 + (S.n + S.told // 2 + S.asked) % 8) end\n"
                "  end }\n")
    record("counts", DEMO, *SMALL, "-n", "24", "--policy", policy)
    varied = {tuple(r["k"] for r in d["rows"]) for d in Recording(path).of("/tectum/decisions")}
    check(len(varied) > 3 and decisions(path, "refused"), varied)
    j, said = again(changed(path, lambda d: None if d["frame"] in (5, 11, 12, 19) else d))
    check(j["decided"] == {"recorded": 20, "policy": 4} and j["plans"] == {"equal": 24, "differ": 0}, j, said)
    check(j["texts"]["differ"] == 0 and j["actions"]["equal"] == 24, j)


@test
def a_text_that_ends_otherwise_differs():
    """Refused, or given up sooner, where it came to its end: the recording's end of it is not there."""
    path = record("ends", DEMO, *SMALL, "-n", "12", "--policy", "isolated")
    whole = [m["request"] for topic, messages in Recording(path).messages.items() if topic.startswith("/tectum/text/")
             for _, m in messages if m["done"]]
    first = next(d["frame"] for d in Recording(path).of("/tectum/decisions") if any(r["request"] == whole[0] for r in d["rows"]))
    refuse = {"refused": [{"request": whole[0], "reason": "a mood"}]}
    j, _ = again(changed(path, lambda d: {**d, **(refuse if d["frame"] <= first else {})}), code=1)
    check(j["texts"]["differ"] == 1 and j["actions"]["differ"] == 0, j)
    shed = lambda d: {**d, "rows": [{**r, **({"shed": "a mood"} if r["request"] == whole[0] else {})} for r in d["rows"]]}
    j, _ = again(changed(path, shed), code=1)
    check(j["texts"]["differ"] == 1 and j["actions"]["differ"] == 0, j)
    j, _ = again(path, "--policy", "oxygen", code=None)
    check(j["texts"]["differ"] == 0, "where another policy decides, texts are as long as it lets them be", j)


@test
def plans_that_differ_are_told():
    path = record("told", DEMO, *SMALL, "-n", "6", "--policy", "isolated")
    out = tectum("replay", path).stdout
    check("plans    6 equal, 0 differ\ndecided  6 as recorded, 0 by the policy\n" in out, out)
    # the frames' messages say that something else ran
    with open(path, "rb") as f, open(WORK + "/changed.mcap", "wb") as to:
        to.write(rewritten(f.read(), "/tectum/frames", lambda d: {**d, "launches": d["launches"][1:]} if d["frame"] == 3 else d))
    j, _ = again(WORK + "/changed.mcap", code=1)
    check(j["plans"] == {"equal": 5, "differ": 1} and j["decided"]["policy"] == 0, j)


@test
def what_is_wrong_is_told_by_the_recordings_name():
    path = record("named", DEMO, "--random-inputs", "1", "-n", "2")
    for sim in ([], ["--sim"]):
        p = tectum("replay", path, *sim, "--set", "frame.period_ms=50", code=3)
        check("--> %s:pipeline.json:" % path in p.stderr and '"ms": 90' in p.stderr and "replay-" not in p.stderr, p.stderr)
        # which texts begin is the recording's
        p = tectum("replay", path, *sim, "--set", "nodes.talk.spawn=every(2)", code=2)
        check("--set nodes.talk.spawn: a replay's texts begin" in p.stderr and len(p.stderr.splitlines()) == 1, p.stderr)
    p = tectum("replay", path, "--weights", WORK + "/none", "--set", "nodes.talk.spawn=every(2)", code=2)
    check("a replay's texts begin" in p.stderr, "before weights are looked for", p.stderr)
    tectum("replay", path, "--set", "nodes.see.spawn=every(1)")


@test
def another_policy_decides_afresh():
    path = record("own", DEMO, *SMALL, "-n", "10", "--policy", MOODS)
    check(again(path)[0]["decided"] == {"recorded": 10, "policy": 0})
    costs = WORK + "/demo.costs"
    tectum("profile", DEMO, *SMALL[:4], "-o", costs)
    for options in (["--policy", "oxygen"], ["--param", "quiet=1"], ["--set", "policy.params.quiet=1"], ["--costs", costs],
                    ["--set", "nodes.talk.deadline.ms=900"], ["--set", "nodes.act.deadline.ms=40"]):
        j, said = again(path, *options, code=None)
        check(j["decided"] == {"recorded": 0, "policy": 10} and j["plans"]["differ"] > 0 and "policy has" not in said, options, j, said)
    j, _ = again(path, "--set", "frame.period_ms=150")
    check(j["decided"]["recorded"] == 10 and j["plans"]["differ"] == 0, "not what decides", j)
    j = json.loads(tectum("replay", path, "--sim", "--format", "json").stdout.splitlines()[-1])
    check(j["policy"] == "moods", "the clock of --sim is another one: the policy is asked")


def changed(path, change):
    """A copy whose decisions are changed."""
    to = WORK + "/changed.mcap"
    with open(path, "rb") as f, open(to, "wb") as out:
        out.write(rewritten(f.read(), "/tectum/decisions", change))
    return to


@test
def frames_without_decisions_are_the_policys_and_said():
    path = record("quiet", DEMO, *SMALL, "-n", "12", "--policy", "isolated")
    j, said = again(changed(path, lambda d: None))
    check(j["decided"] == {"recorded": 0, "policy": 12} and said.count("it does not say what was decided") == 1, said)
    check(j["plans"] == {"equal": 12, "differ": 0}, "this policy looks at no clock", j)
    j, said = again(changed(path, lambda d: None if d["frame"] in (3, 7) else d))
    check(j["decided"] == {"recorded": 10, "policy": 2} and "missing of 2 frames (3, 7)" in said, said)
    j, said = again(changed(path, lambda d: None if d["frame"] > 2 else d))
    check(j["decided"] == {"recorded": 3, "policy": 9} and "(3, 4, 5, 6, ...)" in said, said)
    # another number, or other requests than those that live, or nodes and partitions of another pipeline
    j, said = again(changed(path, lambda d: {**d, "frame": d["frame"] + 1}))
    check(j["decided"]["recorded"] == 0 and "missing of 12 frames" in said and "does not say" not in said, j, said)
    for strange in ({"nodes": [{"node": "none"}]}, {"nodes": [{"node": "act", "partition": "none"}]},
                    {"recompute": [{"node": "none", "ratios": []}]}):
        j, said = again(changed(path, lambda d: {**d, **(strange if d["frame"] == 5 else {})}))
        check(j["decided"] == {"recorded": 11, "policy": 1} and "another pipeline were decided about in 1 frame (5)" in said, j, said)
    j, said = again(changed(path, lambda d: {**d, "rows": [{**r, "request": r["request"] + (d["frame"] == 5)} for r in d["rows"]]}))
    check(j["decided"] == {"recorded": 11, "policy": 1} and "other requests than recorded lived in 1 frame (5)" in said, said)


@test
def decisions_of_a_file_pass_the_gate_of_policies():
    """A number that was not captured is moved to one that was; a share grows no more; what is no number is refused."""
    path = record("gate", DEMO, *SMALL, "-n", "4", "--policy", "isolated")
    steps = lambda lines: {k for line in lines for node, _, k in line["is"] if node == "talk"}
    for wish, made in ((5, 4), (7, 6), (11, 6)):  # captured: 2, 3, 4, 6, 12
        more = changed(path, lambda d: {**d, "rows": [{**r, "k": wish, "group": 2 ** 31 - 1} for r in d["rows"]]})
        p = tectum("replay", more, "--diff", "--format", "json", code=None)
        lines = [json.loads(line) for line in p.stdout.splitlines()]
        check(lines[-1]["decided"]["recorded"] >= 1 and steps(lines[:1]) == {made}, wish, lines)
    j, _ = again(changed(path, lambda d: {**d, "nodes": [{"node": "act", "skip": "", "slices": 9, "priority": -5}]}), code=None)
    check(j["decided"]["recorded"] == 4 and j["actions"] == {"equal": 4, "differ": 0, "missing": 0}, "a hard node is not left out", j)
    memory = ["--set", "resources.mem.store=%s/gate.memory" % WORK]
    wide = record("wide", graph("g06_memory_in_controller"), *SMALL, "-n", "3", "--policy", "default", *memory)
    ratios = lambda r: again(changed(wide, lambda d: {**d, "recompute": [{"node": "recall", "ratios": r, "audit": True}],
                                                      "segments": [{"score": -1e308, "skip": False}] * 128}), code=None)[0]
    j = ratios([-1, 7, 1e308] * 40)
    check(j["decided"]["recorded"] == 3 and j["actions"]["missing"] == 0, "such shares make no prompt", j)
    wrong = [b"{", b"[]", b"7", {"frame": -1}, {"frame": "x"}, {"frame": 1.5}, {"session": 99}, {"policy": 3}, {"rows": {}},
             {"rows": [3]}, {"rows": [{}]}, {"rows": [{"request": -1}]}, {"rows": [{"request": 0}] * 65},
             {"rows": [{"request": 0, "k": -1}]}, {"rows": [{"request": 0, "k": 2 ** 40}]}, {"rows": [{"request": 0, "unshare": 1}]},
             {"rows": [{"request": 0, "shed": 1}]}, {"nodes": [{"node": 4}]}, {"nodes": [{}]},
             {"nodes": [{"node": "act", "partition": 4}]}, {"nodes": [{"node": "act", "slices": -1}]}, {"depth": ["x"]},
             {"depth": [1] * 9}, {"late": [{}]}, {"late": [{"request": 1, "session": -1}]}, {"refused": [{}] * 257},
             {"refused": [{"request": 1, "reason": 2}]}, {"evicted": [{"request": 1}]}, {"recompute": [{"node": "act", "ratios": [None]}]},
             {"recompute": [{"node": "act", "ratios": [0.5] * 129}]}, {"segments": [{"score": "inf"}]}, {"segments": [{}] * 129}]
    for w in wrong:
        p = tectum("replay", changed(path, lambda d: w if isinstance(w, bytes) else {**d, **w}), code=3)
        said = [x for x in p.stderr.splitlines() if "weights" not in x]
        check(len(said) == 1 and "/tectum/decisions" in said[0], w, p.stderr)


@test
def numbers_whose_events_are_missing_are_not_skipped_ticks():
    """A tick that opened no frame has no number in ticks and frames; where only the flight recorder's message is lost it has."""
    path, count = record("flight", DEMO, *SMALL, "-n", "14", "--clock", "paced", "--set", "frame.period_ms=300", "--policy", "default"), [0]
    skipped = lambda p: json.loads(tectum("explain", p, "--format", "json").stdout)

    def drop(data):
        count[0] += 1
        return None if count[0] in (2, 3) else data
    full, lossy = skipped(path), WORK + "/lossy.mcap"
    with open(path, "rb") as f, open(lossy, "wb") as to:
        to.write(rewritten(f.read(), "/tectum/flight", drop))
    j = skipped(lossy)
    check(count[0] > 3 and j["frames"] < full["frames"] and j["skipped"] <= full["skipped"], count, full["skipped"], j["frames"], j["skipped"])
    # and as many as before where numbers are missing everywhere
    with open(lossy, "rb") as f:
        data = f.read()
    for topic in ("/tectum/ticks", "/tectum/frames"):
        data = rewritten(data, topic, lambda d: None)
    with open(lossy, "wb") as to:
        to.write(data)
    check(skipped(lossy)["skipped"] > j["skipped"], skipped(lossy), j)


def observation(robot, i, **options):
    picture = Array("|u1", [SIDE, SIDE, 3], bytes(x * (robot + i + 1) // 64 % 256 for x in range(SIDE * SIDE * 3)))
    obs = {"observation/image": picture, "observation/wrist_image": picture,
           "observation/state": Array.floats([0.1 * robot, 0.6, 0.2, 1.0]), "prompt": ["press the button", "open the drawer"][(robot + i) % 2]}
    return {**obs, "tectum": options} if options else obs


def asks(connect, robot, rounds, rest_s=0.02):
    """A robot that asks for actions, and for a text each third time, which it does not wait for."""
    s = connect()
    for i in range(rounds):
        s.infer(observation(robot, i, tasks=["action", "text"] if i % 3 == 2 else ["action"]))
        time.sleep(rest_s)
    s.close()


def together(*calls):
    threads = [threading.Thread(target=asks, args=c) for c in calls]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@test
def a_server_of_two_robots_is_run_again_as_it_was():
    path = WORK + "/served.mcap"
    s = Server(graph("g24_many_robots"), "--late-ok", "--policy", MOODS, "--set", "frame.sessions=2", "--set",
               "capture.sessions=[1,2]", "--set", "nodes.talk.deadline.ms=150", "--record", path)
    together((s.connect, 0, 12), (s.connect, 1, 9, 0.05))
    check(s.end()[0] == 0)
    j = followed(path)
    check(j["actions"]["equal"] == 21 and j["texts"]["equal"] > 3, j)


@test
def pipelines_that_wait_for_each_other_are_run_again_as_they_were():
    """A frame stops amid its language where another pipeline's robot waits."""
    paths = [WORK + "/live.%s.mcap" % n for n in ("demo_metaworld", "g24_many_robots")]
    for _ in range(6):
        s = Servers(DEMO, graph("g24_many_robots"), options=["--late-ok", "--policy", "isolated", "--record", WORK + "/live.mcap"])
        together((lambda: s.connect(0), 0, 16, 0.0), (lambda: s.connect(1), 1, 16, 0.0), (lambda: s.connect(1), 2, 16, 0.0))
        check(s.end()[0] == 0)
        for path in paths:
            followed(path)
        cut = [d for p in paths for d in Recording(p).of("/tectum/decisions") if any(r["k"] == 0 for r in d["rows"])]
        if cut:
            return
    return "of six runs none had a frame that was cut short: whether two pipelines wait for each other is the scheduler's"


@test
def a_policy_that_was_replaced_is_run_again():
    path, control = WORK + "/live.mcap", WORK + "/robot.socket"
    s = Server(DEMO, "--late-ok", "--record", path, "--control", control)
    asks(s.connect, 0, 4)
    tectum("policy", "fallback", "--control", control)
    asks(s.connect, 0, 4)
    check(s.end()[0] == 0)
    followed(path)
    names = [d["policy"] for d in Recording(path).of("/tectum/decisions")]
    check(names[0] == "oxygen" and names[-1] != "oxygen", names)


@test
def what_a_served_memory_had_not_kept_yet_is_computed_again():
    """A fact's keys are kept behind the frame in which it came, when there was time: a replay would have them sooner."""
    path = WORK + "/memory.mcap"
    s = Server("pipelines/demo_memory.lua", "--random-weights", "1", "--size", "tiny", "--tokenizer", "pipelines/checkpoints/planner",
               "--set", "resources.mem.store=%s/served.memory" % WORK, "--set", "nodes.recall.recompute.first=0.25", "--set",
               "nodes.recall.recompute.floor=0.25", "--record", path)
    c = s.connect()
    for i in range(16):
        facts = {"put": {"%d" % k: "fact %d of %d" % (i, k) for k in range(i % 5)}} if i % 2 else {"remove": []}
        c.infer({"goal": "find:fork", "memory": json.dumps(facts), "tectum": {"tasks": ["text"]}})
    check(s.end()[0] == 0)
    followed(path)
    skipped = [x["skip"] for x in decisions(path, "segments")]
    return None if True in skipped else "every fact was kept before it was asked for: the robot's pauses were long"


sys.exit(main())
