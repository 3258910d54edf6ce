"""serve_texts.py - texts of streams for the clients of a server, TAP.  python3 tests/serve_texts.py PROGRAM

A client that asks for them finds in each reply the texts that its observations' nodes have finished
since; one that does not ask gets the replies that it always got.
"""

import json
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import serve_harness  # noqa: E402
from mcap_file import Recording  # noqa: E402
from serve_client import Array  # noqa: E402
from serve_harness import OBSERVATION, PROGRAM, check, main, test, variant  # noqa: E402

DEMO = "pipelines/demo_metaworld.lua"
PROMPTS = ["press the button", "open the drawer", "close the window"]


class Server(serve_harness.Server):
    def __init__(self, pipeline=DEMO, *options):
        super().__init__(pipeline, "--late-ok", "--set", "nodes.talk.deadline.ms=60000", *options)


def two_streams():
    """The demo with a second node, whose texts are shorter."""
    return variant("two_streams", 'return extend("demo_metaworld.lua", { name = "two_streams", nodes = { decode { name = '
                   '"brief", kv = "lang", spawn = every(1), max_tokens = 3, out = stream "brief_words" } } })')


def asked(i=0, **options):
    return {**OBSERVATION, "prompt": PROMPTS[i % len(PROMPTS)], "tectum": options}


def collect(s, texts, n, key=True, rounds=400):
    """Infer with one prompt until n texts have come; those behind the first reply."""
    for _ in range(rounds):
        if len(texts) >= n:
            return texts
        texts += s.infer(asked(texts=key))["tectum"]["texts"]
    raise AssertionError(("too few texts", texts))


@test
def who_does_not_ask_gets_none():
    s = Server().connect()
    check("tectum" not in s.infer(OBSERVATION))
    check("texts" not in s.infer(asked())["tectum"])
    check("texts" not in s.infer(asked(texts=False))["tectum"])
    check("texts" not in s.infer(asked(texts=None))["tectum"])


@test
def texts_that_ended_come_with_the_next_replies():
    server = Server()
    s = server.connect()
    says = s.infer(asked(tasks=["text"]))["tectum"]["text"]
    first = s.infer(asked(texts=True))["tectum"]
    check(first["texts_lost"] == 0 and all(t["request"] > 0 for t in first["texts"]), first)
    for t in collect(s, [], 6):
        check(sorted(t) == ["chunk_id", "node", "reason", "request", "stream", "text", "text_done", "tokens"], t)
        check(t["stream"] == "narration" and t["node"] == "talk" and t["tokens"] > 0, t)
        check(t["text"] == says if t["text_done"] else t["reason"] == "superseded", t, says)
        check(t["chunk_id"] >= 0 and t["reason"] in ("eos", "length", "superseded"), t)


@test
def texts_come_every_so_many_observations():
    """Frames in which language alone goes on, between requests, do not count; a reset begins anew."""
    for resets, want in ((None, range(0, 99, 4)), (6, [0, 4, 6, 10, 14, 18, 22])):
        s = Server(DEMO, "--set", "nodes.talk.spawn=every(4)").connect()
        about = []
        for i in range(24):
            time.sleep(0.01)  # for those frames
            anew = {"reset": True} if i == resets else {}
            about += [t["chunk_id"] for t in s.infer(asked(texts=True, **anew))["tectum"]["texts"]]
        check(len(about) >= 5 and [b - about[0] for b in about] == list(want)[:len(about)], about)


def held(name, spawn):
    """The demo with a planner that stands on a prefill of its own, and an arm that follows its plan."""
    seen = '"observation/image", "observation/wrist_image", '
    return variant(name, """return extend("demo_metaworld.lua", { name = "%s",
        resources = { kv.frame { name = "high", tokens = 64 }, kv.requests { name = "lang", share_prefix = "high" } },
        nodes = { prefill { name = "think", reads = { %s"prompt" }, writes = "high", spawn = %s, template = "plain" },
                  decode { name = "talk", spawn = on_change("high"), out = stream { name = "plan", default = "stay" } },
                  decode { name = "ask", kv = "lang", spawn = on_request(), max_tokens = 8, out = stream "said" },
                  prefill { name = "see", reads = { %s"observation/state", "plan" }, spawn = on_change("plan") } } })"""
                   % (name, seen, spawn, seen))


@test
def an_episode_with_the_goal_of_the_one_before_has_its_plan():
    server = Server(held("held_goal", 'on_change("prompt")'))
    for robot in range(2):
        s = server.connect()
        for anew in ({}, {"reset": True}):
            s.infer(asked(texts=True, **anew))
            check(len(collect(s, [], 1, rounds=60)) == 1, robot, anew)
        s.close()


@test
def each_text_comes_once():
    s = Server().connect()
    texts = collect(s, [], 12)
    requests = [t["request"] for t in texts]
    check(len(set(requests)) == len(requests), requests)
    chunks = [t["chunk_id"] for t in texts]
    check(len(set(chunks)) == len(chunks), chunks)


@test
def streams_are_chosen_by_their_names():
    s = Server(two_streams()).connect()
    both = {t["stream"] for t in collect(s, [], 8)}
    check(both == {"narration", "brief_words"}, both)
    only = collect(s, s.infer(asked(texts=["brief_words"]))["tectum"]["texts"][:0], 3, ["brief_words"])
    check({t["node"] for t in only} == {"brief"} and max(t["tokens"] for t in only) <= 3, only)
    s.infer(asked(texts=["talk"]))  # and by their nodes'
    check({t["stream"] for t in collect(s, [], 3, ["talk"])} == {"narration"})


@test
def a_text_that_is_waited_for_is_not_told_twice():
    s = Server().connect()
    s.infer(asked(texts=True))
    waited = [s.infer(asked(tasks=["action", "text"], texts=True))["tectum"] for _ in range(4)]
    told = {t["request"] for r in waited for t in r["texts"]}
    check(not told & {r["request"] for r in waited}, waited)


@test
def what_nobody_takes_is_bounded_and_counted():
    s = Server().connect()
    s.infer(asked(texts=True))
    for i in range(60):
        s.infer(asked(i, tasks=["action"]))
    s.infer(asked(tasks=["text"]))  # the texts before it have ended
    reply = s.infer(asked(texts=True))["tectum"]
    check(len(reply["texts"]) == 32 and reply["texts_lost"] > 0, len(reply["texts"]), reply["texts_lost"])
    check(s.infer(asked(texts=True))["tectum"]["texts_lost"] == 0)


@test
def another_client_gets_none_of_the_texts_before():
    server = Server()
    a = server.connect()
    collect(a, [], 3)
    mine = a.infer(asked())["tectum"]["chunk_id"]
    b = server.connect()
    texts = collect(b, [], 3)
    check(all(t["chunk_id"] > mine for t in texts), mine, texts)


@test
def who_takes_turns_on_a_session_gets_no_texts_of_the_other():
    server = Server(two_streams())
    a, b = server.connect(), server.connect()
    for _ in range(8):
        a.send(asked(tasks=["action", "text"], texts=True))
        theirs = {b.infer(asked(texts=True))["tectum"]["chunk_id"] for _ in range(3)}
        mine = {t["chunk_id"] for t in a.reply()["tectum"]["texts"]}
        check(not mine & theirs, mine, theirs)


def turns(server, n, meanwhile=lambda i: None):
    """Actions of a client in so many turns, and the texts that came with them."""
    s, actions, texts = server.connect(), [], []
    for i in range(n):
        meanwhile(i)
        reply = s.infer(asked(seed=i, texts=True))
        actions.append(reply["actions"].data)
        texts += reply["tectum"]["texts"]
        check(reply["tectum"]["texts_lost"] == 0, reply["tectum"])
    return actions, texts


def beside_deaf(*sent):
    """Turns beside a client that sends these two requests and reads nothing, until all is over: the client, and what
    texts others were told. Their actions are those of a server alone."""
    sessions = ["--set", "frame.sessions=2", "--set", "resources.lang.slots=8"]
    alone, _ = turns(Server(two_streams(), *sessions), 24)
    server, deaf = Server(two_streams(), *sessions), []

    def meanwhile(i):
        if i == 2:
            deaf.append(server.connect())
        if i in (2, 6):
            deaf[0].send(asked(1, seed=i, **sent[i > 2]))

    actions, texts = turns(server, 24, meanwhile)
    check(actions == alone, "what others get changes actions")
    check({t["stream"] for t in texts} == {"narration", "brief_words"}, texts)
    return deaf[0], texts


@test
def who_subscribes_and_does_not_read_delays_nobody():
    deaf, texts = beside_deaf({"texts": True}, {"texts": True})
    check(len({t["request"] for t in texts}) == len(texts) > 8, texts)
    late = [deaf.reply(), deaf.reply()]
    told = [t for r in late for t in r["tectum"]["texts"]]
    check(all(r["actions"].shape == (16, 4) and r["tectum"]["texts_lost"] == 0 for r in late), late)
    check(not {t["request"] for t in told} & {t["request"] for t in texts}, told)
    check({t["stream"] for t in collect(deaf, told, 3)} <= {"narration", "brief_words"})


def heard(s, request, pushed):
    """The reply to a request; texts that came as messages of their own until then are added to `pushed`."""
    s.send(request)
    while True:
        message = s.reply()
        if "policy_timing" in message:
            return message
        check(set(message) == {"tectum"} and set(message["tectum"]) == {"texts", "texts_lost"}, message)
        check(len(message["tectum"]["texts"]) == 1 and message["tectum"]["texts_lost"] == 0, message)
        pushed += message["tectum"]["texts"]


@test
def texts_are_pushed_to_who_subscribes():
    s, pushed = Server(two_streams()).connect(), []
    alone = Server(two_streams()).connect()
    for i in range(24):
        reply = heard(s, asked(seed=i, **({"texts": True, "push": True} if i == 0 else {})), pushed)
        check("texts" not in reply["tectum"], reply)
        check(reply["actions"].data == alone.infer(asked(seed=i))["actions"].data, "texts change actions")
    check({t["stream"] for t in pushed} == {"narration", "brief_words"}, pushed)
    check(len({t["request"] for t in pushed}) == len(pushed) and all(t["tokens"] > 0 for t in pushed), pushed)
    only = []
    heard(s, asked(texts=True), [])  # behind its reply none of both streams is left
    heard(s, asked(texts=["brief_words"], push=True), [])
    for i in range(400):
        if i >= 12 and only:
            break
        heard(s, asked(), only)
    check({t["stream"] for t in only} == {"brief_words"}, only)
    for _ in range(8):
        heard(s, asked(texts=True), [])  # from now on they come with replies that ask for them
        for _ in range(4):
            reply = s.infer(asked())
            check("policy_timing" in reply and "texts" not in reply["tectum"], "a message behind the last", reply)
        check(collect(s, [], 1), "no text")
        for i in range(4):
            heard(s, asked(i, texts=True, push=True), [])


@test
def nobody_else_gets_messages_that_he_did_not_ask_for():
    server = Server(two_streams())
    a = server.connect()
    heard(a, asked(texts=True, push=True, session_id="arm"), [])
    a.close()
    again = server.connect()  # the same robot on another connection has not subscribed there
    for _ in range(12):
        check("policy_timing" in again.infer(asked(session_id="arm")))
    heard(again, asked(texts=True, push=True, session_id="arm"), [])
    b = server.connect()
    for _ in range(12):  # b has the session now: every message is a reply
        check("policy_timing" in b.infer(OBSERVATION))
    wrong = server.connect()
    wrong.send(asked(push=3))
    check("tectum.push" in wrong.failure()[0])


@test
def who_is_pushed_texts_and_does_not_read_delays_nobody():
    deaf, texts = beside_deaf({"texts": True, "push": True}, {})
    pushed, replies = [], 0
    while replies < 2 or not pushed:
        message = deaf.reply()
        replies += "policy_timing" in message
        pushed += [] if "policy_timing" in message else message["tectum"]["texts"]
    check(not {t["request"] for t in pushed} & {t["request"] for t in texts}, pushed, texts)


@test
def a_wrong_request_of_another_takes_nothing():
    server = Server()
    a, bad = server.connect(), server.connect()
    a.infer(asked(texts=True))
    for _ in range(8):
        a.infer(asked(tasks=["action"]))
    newest = a.infer(asked(tasks=["text"]))["tectum"]["chunk_id"]  # the texts before it have ended
    bad.send({**asked(), "observation/image": "no picture"})
    text = bad.failure()[0]
    check("observation/image" in text, text)
    reply = a.infer(asked(texts=True))["tectum"]
    check(reply["texts"] and reply["chunk_id"] == newest + 1, newest, reply)


class Ring(serve_harness.Server):
    """A ring that answers questions about its newest picture."""

    def __init__(self, *options):
        super().__init__("pipelines/graphs/g20_question_on_a_ring.lua", "--late-ok", "--random-weights", "1", "--size", "tiny", "--tokenizer",
                         "tests/golden/openvla/tiny/checkpoint", "--set", "nodes.talk.deadline.ms=60000", *options)

    def ask(self, questions, tasks=("action", "text"), first=None):
        """Actions and texts of a new client."""
        picture = Array("|u1", [224, 224, 3], bytes(x // 7 % 256 for x in range(224 * 224 * 3)))
        s, got = self.connect(), []
        for i, q in enumerate(questions):
            r = s.infer({"observation/image": picture, "prompt": "lift the cup", "question": q,
                         "tectum": {"tasks": first if first and i == 0 else list(tasks)}})
            got.append((r["actions"].data, r["tectum"].get("text")))
        return got


@test
def a_ring_gives_each_client_its_own_text():
    table, why = ["what is on the table?"] * 2, ["why?"] * 2
    alone = [Ring().ask(q) for q in (table, why)]
    check(alone[0][0][1] != alone[1][0][1] and all(text for got in alone for _, text in got), alone)
    shared = Ring()
    for i, q in enumerate((table, why, table)):  # each client begins the ring anew
        check(shared.ask(q) == alone[i % 2], q)


@test
def a_ring_counts_the_observations_of_each_client():
    """Filling it with one observation counts once, and a client that begins it anew begins to count."""
    server = Ring("--set", "nodes.talk.spawn=every(6)")
    picture = Array("|u1", [224, 224, 3], bytes(x // 7 % 256 for x in range(224 * 224 * 3)))
    for _ in range(2):
        s, about = server.connect(), []
        for _ in range(14):
            r = s.infer({"observation/image": picture, "prompt": "lift the cup", "question": "why?",
                         "tectum": {"tasks": ["action"], "texts": ["talk"]}})["tectum"]
            about += [t["chunk_id"] for t in r["texts"]]
        check(len(about) >= 2 and [b - about[0] for b in about] == [6 * i for i in range(len(about))], about)
        s.close()


@test
def what_is_held_beside_a_ring_counts_observations():
    """Those that fill the ring with one observation are one."""
    path = os.path.join(serve_harness.BOX, "held.mcap")
    pipeline = variant("ring_held", """return extend("openvla_ring.lua", { name = "ring_held",
        inputs = { text { name = "goal", max_tokens = 24, default = "what is on the table?" } },
        resources = { kv.frame { name = "context", tokens = 320 },
                      kv.requests { name = "say", tokens = 400, slots = 4, share_prefix = "context" } },
        nodes = { prefill { name = "think", reads = { "observation/image", "goal" }, writes = "context", spawn = every(4) },
                  decode { name = "plan", kv = "say", spawn = on_change("context"), max_tokens = 2, out = stream "plan",
                           deadline = soft { ms = 60000 } },
                  decode { name = "ask", kv = "say", spawn = every(1), max_tokens = 1, out = stream "said",
                           deadline = soft { ms = 60000 } } },
        capture = { batch = { 1, 2, 4 }, k = { 1, 4 } } })""")
    server = serve_harness.Server(pipeline, "--late-ok", "--random-weights", "1", "--size", "tiny", "--tokenizer",
                                  "tests/golden/openvla/tiny/checkpoint", "--record", path)
    s, picture = server.connect(), Array("|u1", [224, 224, 3], bytes(x // 7 % 256 for x in range(224 * 224 * 3)))
    for i in range(18):
        s.infer({"observation/image": picture, "prompt": "lift the cup", "tectum": {"tasks": ["action"], "reset": i == 10}})
        time.sleep(0.02)  # for the texts
    s.close()
    check(server.end()[0] == 0)
    told, thought = Recording(path), []
    for tick, frame in zip(told.of("/tectum/ticks"), told.of("/tectum/frames")):
        thought += [tick["counted"]] * any(x["node"] == "think" for x in frame["launches"])
    check(thought == [0, 4, 8, 0, 4], thought)


@test
def a_ring_stands_still_for_its_texts():
    path = os.path.join(serve_harness.BOX, "ring.mcap")
    server = Ring("--record", path)
    late = server.ask(["why?"] * 9, first=["action"])  # asked for when the ring is full
    check(all(text for _, text in late[1:]), late)
    check([actions for actions, _ in late] == [actions for actions, _ in Ring().ask(["why?"] * 9, ["action"])])
    check(server.end()[0] == 0)
    again = subprocess.run([PROGRAM, "replay", path, "--random-weights", "1", "--size", "tiny", "--tokenizer",
                            "tests/golden/openvla/tiny/checkpoint", "--format", "json"], capture_output=True, text=True)
    check(again.returncode == 0, again.stderr)
    counts = json.loads(again.stdout)  # a plan looks at times: a text may end in another frame, or not at all
    check(counts["texts"]["differ"] == 0 and counts["texts"]["equal"] + counts["texts"]["partial"] == 8, counts)
    check(counts["actions"] == {"equal": 9, "differ": 0, "missing": 0}, counts)


@test
def token_ids_are_whole_numbers_of_any_width():
    server = serve_harness.Server("pipelines/demo_planner.lua")
    s = server.connect()
    ids = [7, 11, 5, 9, 300]

    def told(value):
        return s.infer({"prompt#ids": value, "tectum": {"tasks": ["text"]}})["tectum"]["text"]

    def array(dtype, code, values):
        return Array(dtype, [len(values)], struct.pack("<%d%s" % (len(values), code), *values))
    said = told(array("<i4", "i", ids))
    check(said != told(array("<i4", "i", ids[1:])))
    for value in (ids, *(array(*of, ids) for of in (("<i8", "q"), ("<u4", "I"), ("<u8", "Q"), ("<i2", "h"), ("<u2", "H")))):
        check(told(value) == said, value)
    small = ids[:4]
    check(told(array("|u1", "B", small)) == told(small) == told(array("<i4", "i", small)))
    for wrong, words in (([1, 1 << 31], "token id 2"), ([-(1 << 31) - 1], "token id 1"), ([5.5], "token id 1"),
                         ([3, 5.0], "token id 2"), ([3, 4, True], "token id 3"), ([False], "token id 1"),
                         (array("<i8", "q", [3, 4, 1 << 40]), "token id 3"), (array("<u4", "I", [1 << 31]), "token id 1"),
                         (array("<u8", "Q", [(1 << 64) - 1]), "token id 1"), (array("<f4", "f", small), "i32 [n]"),
                         ([[5, 6]], "i32 [n]")):
        s = server.connect()
        s.send({"prompt#ids": wrong, "tectum": {"tasks": ["text"]}})
        refusal = s.failure()[0]
        check(words in refusal, wrong, refusal)


@test
def wrong_names_are_told():
    server = Server()
    for texts, words in ((["narrator"], "has no stream and no decode node 'narrator'"), ([], "list of 1 to 8 names"),
                         (["talk"] * 9, "list of 1 to 8 names"), ([7], "list of 1 to 8 names"), ({}, "list of 1 to 8 names")):
        s = server.connect()
        s.send(asked(texts=texts))
        text = s.failure()[0]
        check("tectum.texts" in text and words in text, text)
    check(server.connect().infer(asked(texts=["narration"]))["tectum"]["texts"] == [])


sys.exit(main())
