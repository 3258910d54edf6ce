#!/bin/sh
# speculation.t - tokens that a draft proposes change nothing of a text: only how many forwards it takes.
# usage: tests/speculation.t [PROGRAM]
#
# Models of this test's own (four layers, two layers, the same four in float32) make the texts of
# random weights. Every pipeline runs with its draft, without it, and by the interpreter, which has
# none: the texts of all requests are equal, under the default plan and under policy chaos. How much
# is kept is known for two of the drafts: all of it where the draft is the model itself, next to
# nothing where it is another one.
. "$(dirname "$0")/opening.sh"
mkdir -p "$W/pipelines/models"
cp pipelines/*.lua "$W/pipelines/"
cp -r pipelines/models "$W/pipelines/"
cp -r policies "$W/policies"
cd "$W" || exit 1

# model NAME LAYERS WIDTH HEADS CHANGES
model() {
    cat >"pipelines/models/$1.lua" <<LUA
local m = include("common/qwen2_family.lua") { name = "$1", by_name = true,
  full = { hidden_size = $3, intermediate_size = 128, num_hidden_layers = $2, num_attention_heads = $4,
           num_key_value_heads = 2, vocab_size = 512, rope_theta = 1000000.0 } }
if m then $5 end
return m
LUA
}
model large 4 64 4 ""
model other 2 32 2 ""
model large_penal 4 64 4 "m.text.penalty = 1.3"
model other_penal 2 32 2 "m.text.penalty = 1.1"

cat >compare.py <<'PYTHON'
import json, sys
def read(path):
    texts, drafted, kept = {}, 0, 0
    for line in open(path):
        f = json.loads(line)
        for node, list_ in (f.get("text") or {}).items():
            for t in list_:
                texts.setdefault((node, t["request"]), []).extend(t.get("tokens") or [])
        drafted += f["plan"].get("drafted", 0)
        kept += f["plan"].get("kept", 0)
    return texts, drafted, kept
(with_, drafted, kept), (interpreted, none, _) = read("with"), read("interpreted")
without, never, _ = read("without")
assert none == 0 and never == 0, "drafts without a draft"
assert with_ == interpreted and len(with_) > 3, "the interpreter's texts differ"
common = with_.keys() & without.keys()
# a request that another one ends is cut at some frame
cut = sys.argv[2] == "cut"
same = lambda a, b: a == b or (cut and a[: len(b)] == b[: len(a)])
assert len(common) > 3 and all(same(with_[r], without[r]) for r in common), "the texts without a draft differ"
share = kept / drafted
low, high = map(float, sys.argv[1].split(":"))
assert low <= share <= high, f"{kept} of {drafted} are kept"
PYTHON

# pipeline LARGE SMALL DTYPE TOKENS DECODE MORE: a chat whose draft is the model SMALL
pipeline() {
    for draft in "draft = { model = 'small', tokens = $4 }," ""; do
        cat >"${draft:+draft}.lua" <<LUA
return extend("qwen_chat.lua", { name = "test", model = without "model",
  models = { main = model { arch = "$1" }, small = model { arch = "$2", dtype = "$3" } }, $6
  nodes = { prefill { name = "read", model = "main" },
            decode { name = "answer", model = "main", $draft $5 } } })
LUA
    done
}

run() { # run FILE OUT POLICY OPTIONS
    pipeline=$1 out=$2 policy=$3
    shift 3
    "$T" run "$pipeline" --root . --random-weights 1 --size full --random-inputs 1 -n 20 --threads 1 \
        --policy "$policy" --format json --drain "$@" >"$out" 2>err </dev/null
}

compare() { # compare TEXT LOW:HIGH [cut]
    for policy in default chaos; do
        run draft.lua with $policy && run draft.lua interpreted $policy --interpret &&
            run .lua without $policy && python3 -S compare.py "$2" "${3:-whole}" >>err 2>&1
        status=$?
        n=$((n + 1))
        if [ $status -eq 0 ]; then echo "ok $n - $1, $policy"
        else
            failed=1
            echo "not ok $n - $1, $policy"
            tail -n 3 err | sed 's/^/# /'
        fi
    done
}

pipeline large large bf16 4 "max_tokens = 60, spawn = every(2)"
compare "a draft that is the model: all is kept" 1:1
pipeline large other bf16 4 "max_tokens = 60, spawn = every(2)"
compare "a draft that is another model: next to nothing is kept" 0:0.1
"$T" graph draft.lua --root . --random-weights 1 --size full --roofline h100 >out 2>err
check "what a look at the draft takes is predicted" grep -qE "^verify.b.* decode .* modelled$" out
pipeline large large f32 16 "max_tokens = 61, spawn = every(2)"
compare "sixteen tokens at a time" 0.5:0.999
pipeline "large\", quantize_head = \"int8" large f32 4 "max_tokens = 60, spawn = every(2)"
compare "the head in 8 bits: the same tokens for one row and for several" 0.3:0.999
pipeline large large f32 1 "max_tokens = 47, spawn = every(1)"
compare "one token at a time, several requests in a launch" 0.5:0.999
pipeline large_penal other_penal bf16 4 "max_tokens = 60, spawn = every(1)"
compare "tokens that were there are less likely" 0:0.1
pipeline large_penal large_penal f32 3 "max_tokens = 60, spawn = every(2)"
compare "tokens that were there are less likely, much is kept" 0.5:0.999
pipeline large large f32 4 "max_tokens = 60, spawn = every(2), temperature = 0.8, top_k = 40, top_p = 0.9"
compare "tokens are drawn" 0.5:0.999
pipeline large large f32 4 "max_tokens = 30, spawn = every(2), choices = { 'yes, I will', 'no', 'yes, but later' }"
compare "one of a list" 0:1
pipeline large large f32 3 "kv = 'context', max_tokens = 60, spawn = every(3)" "resources = { without 'answers' },"
compare "on a kv.frame" 0.5:1 cut
pipeline large large f32 5 "max_tokens = 40, spawn = every(2), prompt = 'question'" \
    "inputs = { text { name = 'question', max_tokens = 40 } },"
compare "behind a prompt of its own" 0.5:1
# ends where some of the texts above are
run .lua without default
ends=$(python3 -c '
import json
texts = {}
for line in open("without"):
    for list_ in json.loads(line)["text"].values():
        for t in list_:
            texts.setdefault(t["request"], []).extend(t["tokens"])
print(", ".join(str(t) for t in sorted({t[i] for t, i in zip(texts.values(), (9, 17, 26, 31, 5, 20))})))')
model large_ends 4 64 4 "m.text.ends = { $ends } m.text.eos = m.text.ends[1]"
pipeline large_ends large_ends f32 4 "max_tokens = 60, spawn = every(2)"
compare "texts that end early" 0.3:1

# Beside hard nodes prefills are in slices, and one at a time is begun. Where a plan begins the draft's, it is the
# one that plans see from then on: if they went on with the other, neither would ever be done.
cat >beside.lua <<'LUA'
return pipeline { name = "beside", schema = 1, frame = frame { period_ms = 100 },
  models = { arm = model { arch = "pi05" }, planner = model { arch = "qwen2" }, small = model { arch = "qwen2" } },
  inputs = { text { name = "prompt", max_tokens = 8 }, text { name = "goal", max_tokens = 8 } },
  resources = { kv.frame { name = "obs", tokens = 80 }, buffer { name = "chunk", shape = { 4, 8 } },
                kv.frame { name = "context", tokens = 80 },
                kv.requests { name = "plans", tokens = 100, slots = 2, share_prefix = "context" } },
  nodes = { prefill { name = "see", model = "arm", writes = "obs", reads = { "prompt" } },
            action  { name = "act", model = "arm", steps = 1, out = "chunk", kv = "obs", deadline = hard { ms = 90 } },
            prefill { name = "think", model = "planner", reads = { "goal" }, writes = "context" },
            decode  { name = "plan", model = "planner", kv = "plans", spawn = every(20), max_tokens = 4,
                      draft = { model = "small", tokens = 2 }, out = stream "plan" } },
  capture = capture { batch = { 1, 2 }, k = { 1, 4 }, slices = 3 } }
LUA
cat >begins.lua <<'LUA'
return policy { name = "begins", api = 1, version = 1,
  plan = function(S, F, D)
    if F.nreq == 0 then return end
    if F.req[1].prefill == "think" and F.index % 20 == 0 then D:slices("plan.draft", 1)
    elseif F.req[1].slices > 0 then D:slices(F.req[1].prefill, 1) end
    D:decode(1, 4)
  end }
LUA
"$T" simulate --root "$W" --random-weights 1 --size tiny --policy begins.lua --launch-ms 2 --frames 20 \
    --trace beside.jsonl beside.lua >"$W/log" 2>&1
ok $? "a draft's prefill is begun first"
grep -q '"node":"plan.draft","request":0,"slices":1,"of":3' beside.jsonl && grep -q '"event":"finish".*"request":0' beside.jsonl
ok $? "and its request ends"
echo "1..$n"
exit $failed
