#!/bin/sh
# memory_partitions.t - recall and prefill on one partition, decoding on the other:
# pipelines/graphs/g17_memory_in_partitions.lua says what the pipeline without partitions says, whatever the lanes.
# usage: tests/memory_partitions.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
G=pipelines/graphs/g17_memory_in_partitions.lua

# Answers of several frames, so that some are decoded while a later prompt is recalled; few segments computed anew.
for base in demo_memory graphs/g17_memory_in_partitions; do
    cat >"$W/x_$(basename $base).lua" <<END
return extend("$base.lua", { name = "spread",
  capture = capture { batch = { 1, 2, 4 }, k = { 1, 2, 6 }, ratio = { 0.25, 0.5, 1.0 } },
  policy  = use { name = "fill", params = { k = 2 } },
  nodes   = { memory_load { name = "recall", recompute = { first = 1.0, decay = 0.8, floor = 0.2 } } } })
END
done
for i in 1 2 3 4 5; do
    cat <<'END'
{"goal": "find:fork", "memory": {"put": {"fridge": "{position:kitchen,state:closed,object:fridge}\n", "cup": "{position:fridge,state:clean,object:cup}\n", "fork": "{position:cup,state:none,object:fork}\n"}}}
{"goal": "find:cup"}
{"goal": "find:fork", "memory": {"put": {"cup": "{position:sofa,state:none,object:cup}\n"}}}
{"goal": "find:fork", "memory": {"remove": ["fridge"]}}
{"goal": "find:cup"}
END
done >"$W/facts.jsonl"
# tell FILE OPTION...: answers' tokens into $W/said.
tell() {
    file=$1
    shift
    rm -f "$W/memory"
    timeout 120 "$T" run "$file" --set "resources.mem.store=$W/memory" --inputs "$W/facts.jsonl" --format json "$@" \
        >"$W/out" 2>"$W/err" </dev/null
    status=$?
    grep '"tokens"' "$W/out" >"$W/said"
    return $status
}

"$T" check "$G" --threads 2 >"$W/out" 2>"$W/err"
check "check takes it" test $? -eq 0
"$T" graph -T text --compiled "$G" --threads 2 >"$W/out" 2>"$W/err"
check "with two lanes decoding has captures of its own partition" grep -q "decode.b1.beside" "$W/out"
# Keys that are kept are made when there is time, and on a busy machine a prompt may come before them:
# five tries.
same_answers() {
    for try in 1 2 3 4 5; do
        tell "$W/x_g17_memory_in_partitions.lua" "$@" --set "nodes.answer.spawn=every(2)"
        python3 tests/same_texts.py "$W/said" "$W/plain" 2>>"$W/err" && return 0
    done
    return 1
}
for policy in fill slack_k chaos; do
    tell "$W/x_demo_memory.lua" --threads 1 --policy $policy --set "nodes.answer.spawn=every(2)"
    check "policy $policy, without partitions" test $? -eq 0 -a -s "$W/said"
    mv "$W/said" "$W/plain"
    for lanes in 1 2 3; do
        check "policy $policy, $lanes lanes: the same answers" same_answers --threads $lanes --policy $policy
    done
done
"$T" simulate "$G" --launch-ms 1 -n 3 --trace "$W/trace" >"$W/out" 2>"$W/err"
check "simulate: the events that are expected" cmp "$W/trace" tests/graphs/g17_memory_in_partitions.jsonl
"$T" simulate "$W/x_g17_memory_in_partitions.lua" --launch-ms 1 -n 6 --set "nodes.answer.spawn=every(2)" \
    --trace "$W/trace" >"$W/out" 2>"$W/err"
check "answers of earlier frames are decoded while a prompt is recalled" awk '
    /"event":"start"/ { match($0, /[0-9]+/); at = substr($0, RSTART, RLENGTH) }
    /"event":"start"/ && /"node":"ask"/ { ask[at] = 1 }
    /"event":"start"/ && /"node":"answer"/ { answer[at] = 1 }
    END { for (at in ask) both += at in answer; exit !both }' "$W/trace"
"$T" check "$G" --set nodes.recall.partition=b >"$W/out" 2>"$W/err"
check "another partition than the prefill's is refused, with its place" \
    grep -q "segments are recalled in the launch of the prefill.*'recall'" "$W/out"

# Against the interpreter: every node, request and step a launch of its own.
as_interpreted() {
    for try in 1 2 3 4 5; do
        for how in --interpret "--threads 3"; do
            rm -f "$W/memory"
            timeout 120 "$T" run "$G" --random-weights 1 --size tiny --random-inputs 1 -n 20 --policy "$1" --format json \
                --set "resources.mem.store=$W/memory" $how 2>"$W/err" >"$W/$how" </dev/null
        done
        python3 tests/same_texts.py "$W/--interpret" "$W/--threads 3" 2>>"$W/err" && return 0
    done
    return 1
}
for policy in default chaos; do
    check "policy $policy: the interpreter's bytes" as_interpreted $policy
done
echo "1..$n"
exit $failed
