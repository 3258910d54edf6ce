#!/bin/sh
# run.t - `tectum run` and `tectum demo` from the outside: what comes out, that bytes are equal
# whatever the policy and the threads, and that bad input ends in one line and no half output.
# usage: tests/run.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=pipelines/demo_metaworld.lua
I=$PWD/tests/golden/demo/episodes/inputs.safetensors
PICTURES=tests/golden/images/decode/files

tectum() { timeout 60 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
demo() { tectum run "$P" --threads 1 "$@"; }
out() { grep -q -- "$1" "$W/out"; ok $? "prints $1"; }
err() { grep -q -- "$1" "$W/err"; ok $? "says $1"; }

# refused TEXT ARGUMENTS...: exit 3, one line that is not empty, nothing on standard output
refused() {
    text=$1
    shift
    demo "$@"
    [ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && [ ! -s "$W/out" ]
    ok $? "$text: exit 3, one line"
}

# frame EPISODE INDEX PROMPT: a line of --inputs
frame() {
    printf '{"observation/image": "@%s#%s.image[%d]", "observation/wrist_image": "@%s#%s.wrist_image[%d]", ' \
        "$I" "$1" "$2" "$I" "$1" "$2"
    printf '"observation/state": "@%s#%s.state[%d]", "prompt": "%s"}\n' "$I" "$1" "$2" "$3"
}
for i in 0 1 2 3 4 5 6 7 8; do frame button $i "press the button"; done >"$W/button.jsonl"
noise="--noise @$I#button.noise"

# The fields of a frame.
demo --inputs "$W/button.jsonl" $noise --param k=2 --format json --drain --out "$W/frames.jsonl" \
    --timeline "$W/frame.svg"
ok $? "an episode from a file runs"
cmp -s "$W/out" "$W/frames.jsonl"; ok $? "--out has the lines of standard output"
[ "$(wc -l <"$W/out")" -ge 10 ]; ok $? "a line a frame, and frames until the texts have ended"
if command -v python3 >/dev/null 2>&1; then
    python3 - "$W/out" >>"$W/err" 2>&1 <<'PYTHON'
import json, sys
fields = {"frame", "start_us", "end_us", "age_us", "missed", "cause", "source", "actions", "text", "plan"}
said, done = {}, set()
for i, line in enumerate(open(sys.argv[1])):
    f = json.loads(line)
    assert set(f) == fields, set(f) ^ fields
    assert f["frame"] == i and f["start_us"] <= f["end_us"]
    assert f["source"] == ("fresh" if i < 9 else "none")
    if i < 9:
        assert len(f["actions"]["act"]) == 16 and all(len(row) == 4 for row in f["actions"]["act"])
        assert f["age_us"] > 0
    else:
        assert f["actions"] == {} and f["age_us"] is None
    assert isinstance(f["missed"], bool) and f["plan"]["launches"]
    for t in f["text"]["talk"]:
        assert t["request"] not in done, "told again after its end"
        said.setdefault(t["request"], ["", []])
        said[t["request"]][0] += t["text"]
        said[t["request"]][1] += t["tokens"]
        if t["done"]:
            done.add(t["request"])
assert done == set(range(9)), done
want = ["move above the button"] * 6 + ["press it down"] * 3
assert [said[i][0] for i in range(9)] == want, said
assert all(said[i][1][-1] == 1 for i in range(9))
PYTHON
    ok $? "fields, rows, tokens told once, sentences as recorded"
else
    n=$((n + 1)); echo "ok $n - fields of a frame # SKIP no python3"
fi
grep -q "</svg>" "$W/frame.svg"; ok $? "--timeline is a picture"
demo --inputs "$W/button.jsonl" $noise
out '"move above the button"'; out 'age .* slack .* batch'

# The same bytes, whatever decides and however many lanes.
dump() { demo --inputs "$W/button.jsonl" --drain --dump "$@" && [ -s "$1" ]; }
dump "$W/one" $noise; ok $? "--dump writes"
for how in "--policy isolated" "--policy shared_kv" "--policy chaos" "--policy chaos --param seed=7" "--param k=2" "--threads 2"; do
    case $how in --threads*) tectum run "$P" --inputs "$W/button.jsonl" $noise --drain $how --dump "$W/two" ;;
    *) dump "$W/two" $noise $how ;; esac
    ok $? "runs with $how"
    cmp "$W/one" "$W/two" >>"$W/err" 2>&1; ok $? "the same bytes with $how"
done
dump "$W/two" --seed 1; dump "$W/three" --seed 1
cmp -s "$W/two" "$W/three"; ok $? "a seed gives the same noise again"
dump "$W/three" --seed 2
! cmp -s "$W/two" "$W/three"; ok $? "another seed other noise"
demo --input "observation/image=@$I#button.image[*]" --input "observation/wrist_image=@$I#button.wrist_image[*]" \
    --input "observation/state=@$I#button.state[*]" --input "prompt=press the button" $noise --drain --dump "$W/two"
cmp -s "$W/one" "$W/two"; ok $? "[*] gives the frames of the file"
tail -n 1 "$W/button.jsonl" | cat - "$W/button.jsonl" >"$W/many.jsonl"
demo --inputs "$W/many.jsonl" --frames 2 --format json
[ "$(wc -l <"$W/out")" -eq 2 ]; ok $? "--frames ends it"
{ head -n 1 "$W/button.jsonl"; echo null; echo; } >"$W/none.jsonl"
demo --inputs "$W/none.jsonl" --format json
out '"frame":1,.*"source":"none","actions":{}'

# Picture files, arrays, ids, an optional camera, a model without a checkpoint.
tectum run pipelines/pi05_libero.lua --random-weights 1 --size tiny --threads 1 --frames 2 \
    --input "observation/image=@$PICTURES/baseline_420.jpg" \
    --input "observation/wrist_image=@$PICTURES/rgb8.png" \
    --input 'observation/state=[0, 0.5, 0, 0, 0, 0, 0, 1]' --input 'prompt#ids=[2, 3, 4]'
ok $? "pictures, an array and ids with random weights"
[ "$(wc -l <"$W/out")" -eq 2 ]; ok $? "the same input in two frames"

# From another folder, paths of the pipeline are found from the program's root.
(cd "$W" && timeout 60 "$T" run "$OLDPWD/$P" --threads 1 --inputs "$W/button.jsonl") \
    >"$W/out" 2>"$W/err" </dev/null
ok $? "a shipped pipeline runs from another folder"
printf 'return extend("demo_metaworld.lua", {\n  name = "away",\n  model = { weights = "no/such" },\n})\n' \
    >"$W/away.lua"
tectum run "$W/away.lua" --inputs "$W/button.jsonl"
[ $? -eq 3 ]; ok $? "weights that are nowhere: exit 3"
err "away.lua:3: weights: no/such: .*neither in the current folder nor in /"
printf '{}\n' >"$W/no_frame.jsonl"
set -- --set model.weights=no/such
for verb in "run --inputs $W/no_frame.jsonl" "graph --compiled" "graph --roofline h100" "explain --memory"; do
    tectum $verb "$P" "$@"
    [ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ]; ok $? "$verb: weights of --set that are nowhere: exit 3, one line"
    err "--set:1: weights: no/such: there is no such file or folder"
done
tectum run "$P" --set model.weights=pipelines --inputs "$W/no_frame.jsonl"
err "--set:1: weights: .*pipelines: holds neither model.safetensors" "so is a folder without any, at the option"
for weights in no/such pipelines; do
    tectum check "$P" --set model.weights=$weights
    [ $? -eq 1 ] && grep -q "^error.E011.: weights: .*$weights: " "$W/out"; ok $? "check: the option is the error"
    out "^ *--> --set:1:15"
    [ "$(grep -c "^error" "$W/out")" -eq 1 ]; ok $? "and no other is"
done
tectum check pipelines/pi05_libero.lua; ok $? "weights of a file may be on the robot"
for encoder in no/such tests/golden/encoders/mpnet_odd/checkpoint; do
    (cd "$W" && timeout 60 "$T" run "$OLDPWD/pipelines/qwen_planner.lua" --random-weights 1 --size tiny \
        --threads 1 --set resources.mem.encoder=$encoder --set resources.mem.tiers.host=1MiB \
        --set resources.mem.store="$W/memory" --input goal=a) >"$W/out" 2>"$W/err" </dev/null
    code=$?
    [ $encoder = no/such ] || { ok $code "so is an encoder"; continue; }
    [ $code -eq 3 ]; ok $? "an encoder that is nowhere: exit 3"
    err "run: --set:1: memory 'mem': encoder: no/such: .*neither in the current folder nor in /"
done
printf 'return extend("demo_metaworld.lua", {\n  inputs = { tensor { name = "observation/state", shape = { 5 } } },\n})\n' \
    >"$W/five.lua"
tectum run "$W/five.lua" --inputs "$W/button.jsonl"
[ $? -eq 3 ] && [ ! -s "$W/out" ]; ok $? "an input that is not the robot's is refused before a frame"
err "five.lua:2:.*'observation/state': shape must be { 4 }"
printf '{}\n' >"$W/nothing.jsonl"
tectum run pipelines/demo_planner.lua --inputs "$W/nothing.jsonl"
err "the pipeline needs this text" "a pipeline without a robot is not called one"

# Bad input.
given() { # given NAME VALUE: the good inputs with one of them replaced; VALUE - leaves it out
    for name in image wrist_image state prompt; do
        case $name in prompt) value="press the button" ;; *) value="@$I#button.$name[0]" ;; esac
        if [ "$name" = "$1" ]; then value=$2; fi
        case $name in prompt) key=$name ;; *) key=observation/$name ;; esac
        [ "$value" = - ] || printf '%s\n' "--input=$key=$value"
    done
}
bad() { # bad TEXT NAME VALUE PATTERN
    given "$2" "$3" >"$W/args"
    pattern=$4
    set -- "$1"
    while IFS= read -r arg; do set -- "$@" "$arg"; done <"$W/args"
    refused "$@"
    err "$pattern"
}
# nan.safetensors: "state" f32 [4] of NaN; the header is 64 bytes
printf '\100\0\0\0\0\0\0\0%-64s' '{"state":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' \
    >"$W/nan.safetensors"
printf '\0\0\300\177\0\0\300\177\0\0\300\177\0\0\300\177' >>"$W/nan.safetensors"
echo "no picture" >"$W/x.jpg"
head -c 3000 "$PICTURES/large.png" >"$W/cut.png"
long=$(printf 'press the button %.0s' 1 2 3 4 5 6 7 8 9 10)
bad "a missing camera" wrist_image - \
    "'observation/wrist_image' is missing; the pipeline wants observation/image, observation/wri"
bad "a state of the wrong length" state "[0, 0, 0]" "state"
bad "a state that is a text" state "zero" "state"
bad "a state of NaN" state "@$W/nan.safetensors#state" "NaN"
bad "NaN in JSON" state "[NaN, 0, 0, 0]" "JSON"
bad "a ragged array" state "[[0, 1], [2]]" "ragged"
bad "an array of texts" state '["a", 0, 0, 0]' "number"
bad "a file that is no picture" image "@$W/x.jpg" "x.jpg"
bad "a picture that is cut short" image "@$W/cut.png" "cut.png"
bad "a picture of another size" image "@$PICTURES/rgb8.png" "image"
bad "no such file" image "@$W/there.png" "there.png"
bad "a word for a picture" image "front" "expected @picture"
bad "no such tensor" image "@$I#buton.image[0]" "no tensor 'buton.image.0.'; it has"
bad "an index past the end" image "@$I#button.image[9]" "9 entries"
bad "an index that is no number" image "@$I#button.image[x]" "index"
bad "a prompt that is too long" prompt "$long" "tokens"
bad "a prompt that is not UTF-8" prompt "$(printf 'press \377')" "UTF-8"
refused "an unknown name" --input "observation/imaeg=@$I#button.image[0]"; err "did you mean 'observation/image'"
refused "no input at all"; err "is missing; the pipeline wants .*: --input, --inputs or --random-inputs gives"
refused "no such file of inputs" --inputs "$W/there.jsonl"
demo --inputs "$W/many.jsonl" --noise "@$I#button.noise"
[ $? -eq 3 ] && [ "$(wc -l <"$W/out")" -eq 9 ]; ok $? "noise that ends before the frames: exit 3"
err "frame 9 is asked for"
refused "noise of another shape" --inputs "$W/button.jsonl" --noise "@$I#button.state"; err "noise"

# Files: located, and nothing half written.
line() { # line TEXT LINE PATTERN: the third line is wrong
    { head -n 2 "$W/button.jsonl"; printf '%s\n' "$2"; } >"$W/bad.jsonl"
    rm -f "$W/bad.out"
    demo --inputs "$W/bad.jsonl" --format json --out "$W/bad.out"
    [ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -q "bad.jsonl:3" "$W/err"
    ok $? "$1: exit 3, one line with the place"
    err "$3"
    [ "$(wc -l <"$W/out")" -eq 2 ] && [ "$(tail -c 1 "$W/out" | od -An -c | tr -d ' ')" = '\n' ]
    ok $? "$1: the frames before it are whole lines"
    [ -z "$(ls "$W" | grep bad.out)" ]; ok $? "$1: no file"
}
line "half an object" '{"observation/image": ' "JSON"
line "an array for a frame" '[1, 2]' "object"
line "a key twice" '{"observation/state": [0,0,0,0], "observation/state": [0,0,0,0]}' "JSON"
line "a value of no kind" '{"observation/state": true}' "state"
line "no camera" '{"observation/state": [0,0,0,0], "prompt": "x"}' "'observation/image' is missing"
line "an unknown name in an object" '{"images": {"top": 1}}' "images/top"
line "a state that is too large for a float" '{"observation/state": [1e999,0,0,0]}' "JSON"
line "bytes that are not UTF-8" "$(printf '{"prompt": "\377"}')" "JSON"
line "a prompt that is too long" "$(frame button 2 "$long")" "tokens"
demo --inputs "$W/button.jsonl" --out "$W/no/such/folder.jsonl"
[ $? -eq 3 ] && grep -q "folder.jsonl" "$W/err"; ok $? "--out where no file can be: exit 3"
tectum run; [ $? -eq 2 ]; ok $? "no pipeline: exit 2"
demo --input prompt; [ $? -eq 2 ]; ok $? "--input without a value: exit 2"
demo --frames 0; [ $? -eq 2 ]; ok $? "no frames: exit 2"
printf 'return pipeline { nmae = "x" }\n' >"$W/p.lua"
tectum run "$W/p.lua"; [ $? -eq 3 ]; ok $? "a pipeline with errors: exit 3"
err "E010"
demo --inputs "$W/button.jsonl" --policy oxygen --param k=0; [ $? -eq 2 ]; ok $? "--param out of its range: exit 2"
sed -e 's/params = {[^}]*}/params = { k = 0 }/' "$P" >"$W/k.lua"
tectum run "$W/k.lua" --inputs "$W/button.jsonl"; [ $? -eq 3 ]; ok $? "a parameter out of its range in the file: exit 3"
err "parameter 'k' of policy 'oxygen' is 0, allowed is 1 to 32"
demo --inputs "$W/button.jsonl" --policy oxigen; [ $? -eq 3 ]; ok $? "an unknown policy: exit 3"

sed -e 's/tokens = OBS_TOKENS }/tokens = OBS_TOKENS - 16 }/' -e '/robot  *=/d' "$P" >"$W/small.lua"
tectum run "$W/small.lua" --weights tests/golden/demo/episodes/checkpoint \
    --input "observation/image=@$I#button.image[*]" \
    --input "observation/wrist_image=@$I#button.wrist_image[*]" --input "observation/state=@$I#button.state[*]" \
    --input 'prompt=press the button'
[ $? -eq 3 ]; ok $? "a frame without room for its pictures: exit 3"
err "has room for 1"
sed -e '/robot  *=/d' "$P" | awk '/decode  *{/ { for (i = 2; i < 10; i++)
    printf "decode { name = \"d%d\", kv = \"lang\", max_tokens = 2, spawn = every(1), " \
           "out = stream \"t%d\" },\n", i, i } { print }' >"$W/nine.lua"
tectum run "$W/nine.lua" --weights tests/golden/demo/episodes/checkpoint \
    --input "observation/image=@$I#button.image[*]" \
    --input "observation/wrist_image=@$I#button.wrist_image[*]" --input "observation/state=@$I#button.state[*]" \
    --input 'prompt=press the button'
[ $? -eq 3 ]; ok $? "nine decode nodes: exit 3"
err "'talk' is one more node that makes texts than the 8"

# At a period on the real clock: the same bytes when there is time, substitutes on time when not.
E=pipelines/checkpoints/metaworld/episodes
paced() { demo --inputs "$E/button.jsonl" --noise "@$E/inputs.safetensors#button.noise" --format json "$@"; }
actions() { sed 's/.*"actions":\({[^}]*}\).*/\1/' "$W/out"; }
slow="--clock paced --frames 4 --set frame.period_ms=400 --set nodes.act.deadline.ms=390"
paced --frames 4; actions >"$W/free"
paced $slow --actions 16; ok $? "paced: runs"
actions >"$W/paced"
cmp -s "$W/free" "$W/paced"; ok $? "paced: the same actions"
paced $slow && python3 - "$W/free" "$W/out" <<'END'
import json, sys
free = [json.loads(line)["act"] for line in open(sys.argv[1])]
paced = [json.loads(line)["actions"]["act"] for line in open(sys.argv[2])]
assert [len(rows) for rows in paced] == [8] * 4 and all(a[:8] == b for a, b in zip(free, paced)), (len(free), len(paced))
END
ok $? "paced: without --actions the rows that the robot's description executes"
[ "$(grep -c '"source":"fresh"' "$W/out")" -eq 4 ]; ok $? "paced: in time"
[ "$(sed -n '$s/.*"tick_us":\([0-9]*\).*/\1/p' "$W/out")" -eq 1200000 ]; ok $? "paced: at the period"
err "4 ticks, 0 skipped, 0 missed"
! grep -q "each tick hands out" "$W/err"; ok $? "paced: a robot that can carry out its rows"
paced $slow --actions 5
[ "$(sed -n '1s/.*"actions":{\([^}]*\)}.*/\1/p' "$W/out" | tr -cd '[' | wc -c)" -eq 6 ]
ok $? "paced: five rows a tick"
paced --clock paced --set frame.period_ms=3 --set nodes.act.deadline.ms=1 --set nodes.act.steps=500 \
    --set nodes.act.deadline.on_miss=last_chunk --frames 40
ok $? "paced: nothing is in time"
[ "$(sed 's/.*"frame":\([0-9]*\).*/\1/' "$W/out" | tr '\n' ' ')" = "0 1 2 3 4 5 6 7 " ]
ok $? "paced: a line for every tick, in their order"
out '"skipped":true'; out '"source":"none"'; err "8 ticks, [1-9] skipped, 8 missed"
paced --clock paced --set frame.period_ms=3 --set nodes.act.deadline.ms=1 --set nodes.act.steps=500 \
    --set nodes.act.deadline.limit=2 --frames 40
ok $? "paced: a robot that stops"
err "frame 2: the robot is stopped, and is given nothing from now on: 'act' had no actions of its own 3 times in a row, limit = 2: the last was not there in time"
[ "$(grep -c "the robot is stopped" "$W/err")" -eq 1 ]; ok $? "paced: a stop is told once"
paced --clock paced --frames 8 --set frame.period_ms=60 --set nodes.act.deadline.ms=55 \
    --set nodes.act.deadline.on_miss=last_chunk
err "each tick hands out 8 actions, in 60 ms robot metaworld carries out 5 at 80 Hz: say --actions 5, or a frame.period_ms of 100"
demo --actions 3 --inputs "$E/button.jsonl"; [ $? -eq 2 ]; ok $? "--actions without a clock: exit 2"

# Language that is asked for and given up, line by line.
with() { frame button "$1" "press the button" | sed "s/}\$/, $2}/"; }
{
    with 0 '"#ask": [{"node": "talk", "max_tokens": 3, "prio": 2}, {}]'
    with 1 '"#cancel": [1, 99], "#ask": {}'
    frame button 2 "press the button"
    with 3 '"#ask": [{},{},{},{},{},{},{},{},{},{},{},{},{}]'
    echo null
} >"$W/asks.jsonl"
demo --set 'nodes.talk.spawn=on_request()' --inputs "$W/asks.jsonl" --format json --drain --policy oxygen --param k=2
ok $? "frames that ask for requests run"
if command -v python3 >/dev/null 2>&1; then
    python3 - "$W/out" >>"$W/err" 2>&1 <<'PYTHON'
import json, sys
f = [json.loads(line) for line in open(sys.argv[1])]
assert f[0]["asked"] == [{"node": "talk", "request": 0, "refused": None},
                         {"node": "talk", "request": 1, "refused": None}], f[0]["asked"]
assert f[1]["cancelled"] == [{"request": 1, "live": True}, {"request": 99, "live": False}], f[1]
assert f[1]["asked"][0]["request"] == 2 and "asked" not in f[2] and "cancelled" not in f[2]
full = f[3]["asked"]
assert len(full) == 13 and full[0]["refused"] is None, full
assert [a["refused"] for a in full if a["refused"]] and full[-1]["refused"] == "no kv slot", full
ends = {t["request"]: t for x in f for t in x["text"]["talk"] if t["done"]}
made = {}
for x in f:
    for t in x["text"]["talk"]:
        made.setdefault(t["request"], []).extend(t["tokens"])
assert ends[0]["reason"] == "length" and len(made[0]) == 3, (ends[0], made[0])
assert ends[1]["reason"] == "cancelled" and made[1][:2] == made[0][:2]
assert len(ends) == 3 + sum(a["refused"] is None for a in full), ends
PYTHON
    ok $? "asks, refusals, cancels and lengths are told"
fi
demo --set 'nodes.talk.spawn=on_change()' --set nodes.talk.supersede=true --inputs "$W/button.jsonl" --format json --drain
[ "$(grep -o '"request":[0-9][0-9]*' "$W/out" | sort -u | wc -l)" -eq 1 ]
ok $? "one instruction, one request"
for bad in '"#ask": [{"node": "tlk"}]' '"#ask": [{"max_tokens": 0}]' '"#ask": 3' '"#ask": [{"pri": 1}]' \
    '"#cancel": ["a"]' '"#cancel": -1' '"#kancel": 1'; do
    with 0 "$bad" >"$W/bad.jsonl"
    refused "$bad" --inputs "$W/bad.jsonl"
done

# Questions of their own, read behind the frame's prefix: what a whole prompt would have said.
ids() { frame button 4 x | sed "s/\"prompt\": \"x\"}\$/\"prompt#ids\": [$1]$2}/"; }
Q=tests/pipelines/tasks.lua
{
    ids "2, 40, 41, 42, 43" ', "question#ids": [50, 51, 52], "#ask": {"node": "answer"}'
    ids "2, 40, 41, 42, 43" ', "question#ids": [60], "other": "press", "#ask": {"node": "answer", "max_tokens": 3}'
} >"$W/forked.jsonl"
{ ids "2, 40, 41, 42, 43, 50, 51, 52" ', "question": ""'; ids "2, 40, 41, 42, 43, 60" ', "question": ""'; } >"$W/whole.jsonl"
tectum run "$Q" --threads 1 --inputs "$W/whole.jsonl" --set nodes.talk.max_tokens=6 --format json --drain --out "$W/whole"
ok $? "whole prompts run"
tectum run "$Q" --threads 1 --inputs "$W/forked.jsonl" --format json --drain --out "$W/forked"
ok $? "prompts of their own run"
if command -v python3 >/dev/null 2>&1; then
    python3 - "$W/whole" "$W/forked" >>"$W/err" 2>&1 <<'PYTHON'
import json, sys
def texts(path, node):
    made = {}
    for line in open(path):
        for t in json.loads(line)["text"][node]:
            made.setdefault(t["request"], []).extend(t["tokens"])
    return [made[k] for k in sorted(made)]
whole, forked = texts(sys.argv[1], "talk"), texts(sys.argv[2], "answer")
assert len(whole) == len(forked) == 2, (whole, forked)
assert forked[0] == whole[0] and forked[1] == whole[1][:3], (whole, forked)
assert len(texts(sys.argv[2], "remark")) == 1 and len(texts(sys.argv[2], "talk")) == 2
PYTHON
    ok $? "a forked prompt says what a whole one says"
fi
questions() {
    ids "2, 40" "$1" >"$W/bad.jsonl"
    tectum run "$Q" --threads 1 --inputs "$W/bad.jsonl"
    [ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && [ ! -s "$W/out" ]; ok $? "question$1: exit 3, one line"
    err "$2"
}
questions '' "question"
questions ', "question#ids": [1, 2, 3, 4, 5, 6, 7, 8, 9]' "allows 8"
questions ', "question#ids": [999999]' "vocabulary"
questions ', "question": [0.5]' "question"
tectum run "$Q" --threads 1 --inputs "$W/forked.jsonl" --set model.arch=pi05
[ $? -eq 3 ]; ok $? "a question where text sees all of the prompt: exit 3"
err "sees all of its prompt"

# What check warns of is said when it runs; frames go on.
tectum run "$P" --threads 1 --random-inputs 1 -n 1 --set 'capture.batch=[8]'
[ $? -eq 0 ] && [ "$(grep -c 'warning\[W104\]' "$W/err")" -eq 1 ] && ! grep -q warning "$W/out"
ok $? "a warning of check: on standard error, once"
tectum run "$P" --threads 1 --random-inputs 1 -n 1
[ $? -eq 0 ] && [ ! -s "$W/err" ]; ok $? "none: nothing is said"

# Recorded episodes replay without a simulator, and say what they said; whatever decides, the same bytes.
for model in metaworld metaworld_aged; do
    for episode in pipelines/checkpoints/$model/episodes/*.jsonl; do
        key=$(basename "$episode" .jsonl) from=${episode%/*}/inputs.safetensors
        tectum run "pipelines/demo_$model.lua" --threads 1 --inputs "$episode" --drain --dump "$W/one" \
            --noise "@$from#$key.noise"
        ok $? "$model: $key replays"
        [ "$(grep -c '^ *[0-9]* *\[' "$W/out")" -eq "$(wc -l <"$episode")" ]
        ok $? "$model: $key: actions for every observation"
        out '"\(press it down\|pull the handle\|push it shut\|turn it open\|turn it closed\)"'
        tectum run "pipelines/demo_$model.lua" --threads 1 --inputs "$episode" --drain --dump "$W/two" \
            --noise "@$from#$key.noise" --policy chaos
        cmp -s "$W/one" "$W/two"; ok $? "$model: $key: the same bytes under another policy"
    done
done

# The demo.
tectum demo --out "$W/demo"; ok $? "demo: equal bytes, as recorded"
out "actions \([1-9][0-9]*\)/\1, texts \([1-9][0-9]*\)/\2"; out "tensors *148"; out "captures:"
[ -s "$W/demo/timeline.svg" ]; ok $? "demo: a timeline"
tectum demo --out "$W/demo" --dtype f32 --format json --frames 9; out '"ok": *true'
echo "1..$n"
exit $failed
