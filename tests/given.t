#!/bin/sh
# given.t - given actions from the outside: as words, as lines, left out, refused, in pictures.
# usage: tests/given.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=tests/pipelines/prefix.lua
I=$PWD/tests/golden/demo/episodes/inputs.safetensors
PREV='[[0.25, -0.5, 0.75, 1], [0.125, 0, 0, 1]]'

tectum() { timeout 60 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
err() { grep -q -- "$1" "$W/err"; ok $? "says $1"; }
run() { # run PIPELINE OPTIONS...: one frame
    file=$1
    shift
    tectum run "$file" --threads 1 --input "image=@$I#button.image[0]" \
        --input "wrist_image=@$I#button.wrist_image[0]" --input 'state=[0, 0.6, 0.2, 1]' \
        --input 'prompt=press the button' --format json "$@"
}
actions() { sed -n '1s/.*"actions":\({[^}]*}\).*/\1/p' "$W/out" >"$1"; [ -s "$1" ]; }

# Words and lines.
run tests/pipelines/prefix_none.lua --frames 1; actions "$W/none"; ok $? "without the field"
run $P --frames 1; actions "$W/out0"; ok $? "with the field, nothing given"
cmp -s "$W/none" "$W/out0"; ok $? "the same actions"
run $P --frames 1 --input 'prev_actions=[]'; actions "$W/out0"; cmp -s "$W/none" "$W/out0"
ok $? "an empty list is nothing"
run $P --frames 1 --input "prev_actions=$PREV"; actions "$W/given"; ok $? "two actions in words"
grep -q '"act":\[\[0.250000' "$W/given"; ok $? "what is given comes back"
cmp -s "$W/none" "$W/given"; [ $? -eq 1 ]; ok $? "the other actions follow it"
printf '{"prev_actions": %s}\n{}\n{"prev_actions": null}\n' "$PREV" >"$W/lines.jsonl"
run $P --inputs "$W/lines.jsonl"; actions "$W/line"; cmp -s "$W/given" "$W/line"
ok $? "the same from a file, frame by frame"
[ "$(grep -c '"source":"fresh"' "$W/out")" -eq 3 ]; ok $? "lines without it run"

# Refused.
run $P --frames 1 --input 'prev_actions=[[1, 2, 3]]'; [ $? -eq 3 ]; ok $? "three columns: exit 3"
err "prev_actions: must be float\[d,4\] with d = 0 to 8, is f64\[1,3\]"
run $P --frames 1 --input 'prev_action=[]'; [ $? -eq 3 ]; ok $? "a name with a mistake: exit 3"
err "did you mean 'prev_actions'"
run tests/pipelines/prefix_none.lua --frames 1 --input 'prev_actions=[]'
[ $? -eq 3 ]; ok $? "without the field there is no such input: exit 3"

# Checked.
check() { # check TEXT WHAT OPTIONS...
    text=$1 what=$2
    shift 2
    tectum check "$@" $P
    [ $? -eq 1 ] && cat "$W/out" "$W/err" | grep -q -- "$what"
    ok $? "$text: exit 1, $what"
}
tectum check $P; ok $? "check: fine"
check "columns of another robot" "'prev_actions' has 3 columns, an action of robot sawyer has 4" \
    --set 'inputs.prev_actions.shape=[8,3]'
check "a model without adaptive norms" "its action expert has no adaptive norms" \
    --set model.arch=pi0 --random-weights 1 --set 'resources.chunk.shape=[16,32]'
check "as many as a chunk" "nothing would be left to compute" \
    --set 'inputs.prev_actions.shape=[16,4]'
sed 's/actions = { size = 4 }/actions = { size = 4, ops = { { op = "linkage", horn = 1, arm = 2 } } }/' \
    tests/pipelines/prefix_none.lua >"$W/prefix_none.lua"
cp $P "$W/prefix.lua"
P=$W/prefix.lua
check "a step without an inverse" "step 1 of its actions, linkage, cannot be undone"
tectum graph -T text "$P"; grep -q 'prev_actions *reads *-> act' "$W/out"; ok $? "graph: an edge"
tectum expand "$P"; grep -q '"prefix": "prev_actions"' "$W/out"; ok $? "expand: the field"
echo "1..$n"
exit $failed
