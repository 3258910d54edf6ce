#!/bin/sh
# replay_memory.t - a recording whose run began with a memory that was not empty: it holds texts, vectors and groups,
# and a replay begins with them; where they are too large, with a file that somebody has kept, or not at all.
# usage: tests/replay_memory.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
D=pipelines/demo_memory.lua
mkdir "$W/tmp"
TMPDIR=$W/tmp
export TMPDIR
cat >"$W/facts.jsonl" <<'END'
{"goal": "fetch:fork", "memory": {"put": {"fridge": "{position:kitchen,state:closed,object:fridge}\n", "cup": "{position:fridge,state:clean,object:cup}\n", "fork": "{position:cup,state:dirty,object:fork}\n", "pan": "{position:sofa,state:dirty,object:pan}\n"}}}
{"goal": "fetch:fork", "memory": {"put": {"cup": "{position:table,state:clean,object:cup}\n"}}}
{"goal": "find:fork", "memory": {"remove": ["fridge"]}}
{"goal": "fetch:pan"}
END
cat >"$W/more.jsonl" <<'END'
{"goal": "fetch:fork"}
{"goal": "find:pan", "memory": {"put": {"pan": "{position:bed,state:dirty,object:pan}\n"}}}
{"goal": "fetch:cup"}
END
# record NAME ARGUMENTS...: $W/NAME.mcap; replay NAME EXPECTED-CODE ARGUMENTS...: $W/out and $W/err.
record() {
    name=$1
    shift
    timeout 120 "$T" record "$@" --threads 1 --device cpu --record "$W/$name.mcap" >"$W/out" 2>"$W/err" </dev/null
    check "$name is recorded" test $? -eq 0
}
replay() {
    name=$1 code=$2 of="$1 ${3:-}"
    shift 2
    timeout 120 "$T" replay "$W/$name.mcap" --threads 1 --device cpu "$@" >"$W/out" 2>"$W/err" </dev/null
    check "replay $of: exit $code" test $? -eq "$code"
}
memory() {
    store=$1
    shift
    "$T" run "$D" --threads 1 --device cpu --inputs "$W/facts.jsonl" --set "resources.mem.store=$W/$store" "$@" \
        >"$W/out" 2>&1 </dev/null
}

memory plain
record plain $D --inputs "$W/more.jsonl" --set "resources.mem.store=$W/plain"
replay plain 0
check "every text is the same" grep -q '^texts    3 equal, 0 differ' "$W/out"
rm "$W/plain"
replay plain 0
check "its store need not be there" grep -q '^texts    3 equal' "$W/out"
for how in "" --empty-memories; do
    # shellcheck disable=SC2086
    replay plain 2 --set "resources.mem.store=$W/plain" $how
    check "a store that would not be read is refused ($how)" grep -q "^tectum replay: --set resources.mem.store: a replay keeps no file, and the memory begins " "$W/err"
done
replay plain 1 --empty-memories
check "without what it remembered texts differ" grep -q '^texts    .* [1-3] differ' "$W/out"
check "nothing is left" test -z "$(ls "$W/tmp")"
# Another tokenizer makes other tokens of its texts: what it says of them is not believed, so none is left out.
mkdir "$W/rules"
cp pipelines/checkpoints/planner/*.json "$W/rules"
sed -i '/^ *"[a-z] n",$/d' "$W/rules/tokenizer.json"
"$T" replay "$W/plain.mcap" --threads 1 --device cpu --tokenizer "$W/rules" >"$W/out" 2>"$W/err" </dev/null
check "with another tokenizer it goes on" test $? -le 1
check "one line says that tokens were counted anew" grep -q "^tectum replay: memory 'mem': $W/plain.mcap:memory/mem.0 has not this tokenizer's numbers of tokens: tokens were counted anew, which are others for [1-3] of 3 texts; texts stay$" "$W/err"

# What a recording says of memories is not believed; where it is not used it does no harm.
python3 -S - "$W" <<'END'
import struct, sys
sys.path.insert(0, "tests")
from mcap_file import rewritten
data = open(sys.argv[1] + "/plain.mcap", "rb").read()
text = lambda t: struct.pack("<I", len(t)) + t
big = bytes(16) + text(b"big") + text(b"") + struct.pack("<Q", 1 << 20) + bytes((1 << 20) + 4)
big = struct.pack("<BQ", 9, len(big)) + big
def start(d, **more):
    return {**d["memories"][0], **more}
def put(name, change, topic="/tectum/memories", data=data):
    with open(f"{sys.argv[1]}/{name}.mcap", "wb") as f:
        f.write(rewritten(data, topic, change) + big)
put("many", lambda d: {"memories": [start(d, memory=f"m{i // 16}", session=i % 16, attachment="big") for i in range(128)]})
put("twice", lambda d: {"memories": [start(d), start(d)]})
put("number", lambda d: {"memories": 5})
put("other", lambda d: {"memories": [start(d, state="0" * 32)]})
put("half", lambda d: b'{"memories":')
put("state", lambda d: {"memories": [start(d, state="zz")]})
put("sum", lambda d: {"number": 1, "causes": dict.fromkeys(("gpu", "policy", "host"), (1 << 63) - 1)}, "/tectum/not_begun",
    data.replace(b"/tectum/decisions", b"/tectum/not_begun"))
END
for how in many twice number half state; do
    replay $how 3
    check "$how: one line with the recording's name" grep -q "^tectum replay: $W/$how.mcap: message /tectum/memories: " "$W/err"
    check "$how: and no other" test "$(wc -l <"$W/err")" -eq 1
    "$T" replay "$W/$how.mcap" --threads 1 --device cpu --empty-memories >"$W/out" 2>"$W/err" </dev/null
    check "$how: --empty-memories does not read it" test $? -le 1
    "$T" replay "$W/$how.mcap" --sim >"$W/out" 2>"$W/err" </dev/null
    check "$how: nor does --sim" test $? -le 1
done
replay many 3
check "1 MiB that is named 128 times" grep -q "attachments are larger than a recording holds" "$W/err"
replay other 3
check "what is attached is shown by the recording's name" grep -q ": $W/other.mcap:memory/mem.0 holds [0-9]* texts" "$W/err"
replay sum 3
check "misses whose sum no number holds" grep -q "^tectum replay: $W/sum.mcap: .*not_begun" "$W/err"
check "nothing is left of these" test -z "$(ls "$W/tmp")"

# Groups that became static, whose keys are joint; less of it computed; vectors of an encoder; several robots.
for how in static encoded sessions; do
    more=
    case $how in
    static) more='--set resources.mem.stable_steps=1 --set nodes.recall.recompute.decay=0.7 --set nodes.recall.recompute.floor=0.1' ;;
    encoded) more='--set resources.mem.encoder=tests/golden/encoders/minilm_tiny/checkpoint' ;;
    sessions) more='--set frame.sessions=2' ;;
    esac
    # shellcheck disable=SC2086
    memory $how $more
    # shellcheck disable=SC2086
    record $how $D --inputs "$W/more.jsonl" --set "resources.mem.store=$W/$how" $more
    replay $how 0
    check "$how: texts are the same" grep -q '^texts    [36] equal, 0 differ' "$W/out"
done

# More than the recording holds: texts of 60 KB, which are a word each where there is no tokenizer.
Q=pipelines/qwen_planner.lua
python3 -S - "$W/large.jsonl" <<'END'
import json, sys
with open(sys.argv[1], "w") as out:
    for k in range(20):
        put = {f"s{k}.{i}": f"word{k}x{i} " + "." * 60000 for i in range(15)}
        out.write(json.dumps({"goal": "a", "memory": {"put": put}}) + "\n")
END
SMALL='--random-weights 1 --size tiny --set resources.mem.tiers.host=1MiB --set resources.mem.tokens=512'
SMALL="$SMALL --set resources.ctx.tokens=1024 --set resources.plans.tokens=1040"
# shellcheck disable=SC2086
timeout 120 "$T" run $Q $SMALL --threads 1 --device cpu --set "resources.mem.store=$W/large" --inputs "$W/large.jsonl" \
    >"$W/out" 2>"$W/err" </dev/null
check "a large memory" test $? -eq 0
cp "$W/large" "$W/kept"
# shellcheck disable=SC2086
record large $Q $SMALL --set "resources.mem.store=$W/large" --input goal=word3x4 --input \
    'memory={"put": {"new": "word3x4 and more"}}'
check "it is told what to keep" grep -q "^tectum record: the recording does not hold what memory 'mem' of session 0 began with, 300 texts, 17.*MiB (all of them have 16 MiB at most): a replay needs a copy of $W/large as it is now$" "$W/err"
check "the recording does not hold it" test "$(wc -c <"$W/large.mcap")" -lt 4000000
replay large 3
check "one line says what it began with, how large that is and what to do" grep -q "^tectum replay: .*memory 'mem': it began with 300 texts, state [0-9a-f]\{32\}, 17.*MiB, of which the recording holds none (16.*MiB at most): name a file of them with --set resources.NAME.store=FILE, or go on without by --empty-memories: $W/large holds 301 texts, state [0-9a-f]\{32\}$" "$W/err"
check "and no other" test "$(wc -l <"$W/err")" -eq 1
replay large 0 --set "resources.mem.store=$W/kept"
replay large 3 --set "resources.mem.store=$W/nothing"
check "a file that is not there is named" grep -q "$W/nothing: " "$W/err"
cp "$W/kept" "$W/before"
"$T" replay "$W/large.mcap" --device cpu --set "resources.mem.store=$W/kept" >/dev/null 2>&1 </dev/null
check "a file that is read stays as it is" cmp "$W/kept" "$W/before"
"$T" replay "$W/large.mcap" --threads 1 --device cpu --empty-memories >"$W/out" 2>"$W/err" </dev/null
check "it goes on without" test $? -le 1
"$T" replay "$W/plain.mcap" --sim --empty-memories >"$W/out" 2>"$W/err" </dev/null
check "--sim has no memory" test $? -eq 2

# Keys and values of many texts take a while: that is said, before and meanwhile.
python3 -S - "$W/many.jsonl" <<'END'
import json, sys
with open(sys.argv[1], "w") as out:
    for k in range(2):
        put = {f"s{k}.{i}": f"word{k}x{i}" for i in range(600)}
        out.write(json.dumps({"goal": "a", "memory": {"put": put}}) + "\n")
END
# shellcheck disable=SC2086
timeout 120 "$T" run $Q $SMALL --threads 1 --device cpu --set "resources.mem.store=$W/many" --inputs "$W/many.jsonl" \
    >"$W/out" 2>"$W/err" </dev/null
check "keys of a memory that grows are no long start" test $? -eq 0 -a "$(grep -c 'are to be computed' "$W/err")" -eq 0
# shellcheck disable=SC2086
record thousand $Q $SMALL --set "resources.mem.store=$W/many" --input goal=word1x4
check "nor are those that the file has" test "$(grep -c 'are to be computed' "$W/err")" -eq 0
replay thousand 0
check "one line says how many are computed first" grep -q "^tectum replay: memory 'mem': keys and values of 1200 of 1200 segments are to be computed before the first frame$" "$W/err"
echo "1..$n"
exit $failed
