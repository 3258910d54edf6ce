#!/bin/sh
# recalls.t - a memory from the outside: pipelines/qwen_planner.lua at its smallest, with a file that
# remembers.
# usage: tests/recalls.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
cd "$W" || exit 1

# run INPUTS OPTION...: frames as JSON lines into `out`.
run() {
    file=$1
    shift
    "$T" run "$root/pipelines/qwen_planner.lua" --random-weights 1 --size tiny --format json \
        --inputs "$file" "$@" >out 2>err
}
tokens() { sed -n 's/.*"tokens":\(\[[0-9,]*\]\).*/\1/p' out; }
last() { tail -n 1 out | sed -n "s/.*\"memory\":{.*\"$1\":\([0-9]*\).*/\1/p"; }

cat >first.jsonl <<'END'
{"goal": "put a clean apple in the fridge", "memory": {"put": {"apple": "the apple is in the fridge and is sliced\n", "cup": "the cup is on the table and is dirty\n", "fridge": "the fridge is in the kitchen and is closed\n"}}}
{"goal": "put a clean cup in the fridge"}
{"goal": "put a dirty cup on the shelf", "memory": {"put": {"cup": "the cup is on the shelf\n"}}}
{"goal": "put a clean apple away", "memory": {"remove": ["cup"]}}
END
cat >more.jsonl <<'END'
{"goal": "where is the apple"}
{"goal": "where is the fridge"}
END
run first.jsonl
check "four prompts are answered" test $? -eq 0 -a "$(wc -l <out)" -eq 4
check "each found its segments" test "$(last segments)" -eq 11
check "and computed fewer rows than a prefill" test "$(last rows)" -lt "$(last rows_full)"
check "what was said is in a file" test -s planner.memory
run more.jsonl --policy default
check "another run remembers" test "$(last stored)" -eq 2 -a "$(last segments)" -eq 4
check "keys and values come from the file" grep -qE "\"(ram|file)\":[1-9]" out
check "and are not computed" test "$(last remembered_tokens)" -eq 0
run more.jsonl --policy default --set nodes.recall.select=full
tokens >full
run more.jsonl --policy default --set nodes.recall.recompute.first=1 \
    --set nodes.recall.recompute.decay=1
tokens >keep
check "everything computed anew says what a full prompt says" cmp full keep
check "and that is something" test -s full
for select in reuse epic cacheblend prefix keep; do
    run more.jsonl --policy default --set nodes.recall.select=$select
    check "select = $select runs" test $? -eq 0 -a "$(wc -l <out)" -eq 2
done
for overlap in separate next balanced bounded; do
    run more.jsonl --policy default --set nodes.recall.overlap=$overlap
    tokens >said.$overlap
    check "overlap = $overlap says the same" cmp said.separate said.$overlap
done
run more.jsonl --policy keep_fidelity
check "keep_fidelity audits its first prompt: it is computed whole" \
    test $(($(last rows) * 2)) -gt "$(last rows_full)"
echo '{"goal": "x", "memory": {"puts": {}}}' >wrong.jsonl
check "a change that is none is refused" test "$(run wrong.jsonl; echo $?)" -ne 0
check "in words" grep -q 'memory: changes are {"put": {ID: TEXT}, "remove": \[ID\]}' err
printf '{"goal": "x", "memory": {"put": {"long": "%s"}}}\n' "$(seq -s ' ' 300)" >long.jsonl
check "a segment that is too long is refused" test "$(run long.jsonl; echo $?)" -ne 0
check "with both numbers" grep -q "'long' has 300 tokens, the pipeline allows 1 to 128" err
"$T" run "$root/pipelines/qwen_planner.lua" --random-weights 2 --size tiny --inputs more.jsonl >out 2>err
check "another model's keys and values are refused: exit 3" test $? -eq 3
check "by name" grep -q "memory 'mem'" err
size=$(stat -c %s planner.memory)
cp planner.memory whole
head -c $((size - 1000)) whole >planner.memory
run more.jsonl
check "a file that was cut off still serves what it has" test $? -eq 0 -a "$(wc -l <out)" -eq 2
head -c 20000 /dev/zero >planner.memory
run more.jsonl
check "a file that is no memory is refused and left alone" test $? -ne 0 -a "$(stat -c %s planner.memory)" -eq 20000
rm planner.memory
run first.jsonl --set resources.mem.remote=unix:/nowhere/socket
check "a server that is not there costs nothing but its memory" test $? -eq 0 -a "$(wc -l <out)" -eq 4
check "and is named, with the node, the memory and the cause" \
    grep -qE "^tectum run: .*qwen_planner.lua:[0-9]+: 'recall', memory 'mem': memory: server unix:/nowhere/socket: No such file" err
check "at a bounded rate" test "$(grep -c nowhere err)" -le 5
# A planner's memory beside a robot: its changes come with the robot's observations.
"$T" run "$root/pipelines/graphs/g02_memory_planner_and_arm.lua" --random-weights 1 --size tiny --random-inputs 1 \
    --input 'memory={"put": {"cup": "the cup is on the table"}}' >out 2>err
check "a memory beside a robot takes changes" grep -q "memory: 1 remembered" out
echo "1..$n"
exit $failed
