#!/bin/sh
# remembers.t - what was said becomes a segment of the memory: pipelines/graphs/g18_answer_is_remembered.lua with
# the bundled planner, from the outside.
# usage: tests/remembers.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
G=pipelines/graphs/g18_answer_is_remembered.lua
C=tests/graphs/1ms.costs

# tell STORE OPTION...: frames into $W/out.
tell() {
    store=$1
    shift
    timeout 120 "$T" run "$G" --threads 1 --set "resources.mem.store=$W/$store" "$@" >"$W/out" 2>"$W/err" </dev/null
}
said() { sed -n 's/.*  "\(.*\)"$/\1/p' "$W/out" | tr '\n' ' '; }
counts() { sed -n 's/.*memory: \([0-9]* remembered, [0-9]* in the prompt\).*/\1/p' "$W/out" | tr '\n' ';'; }

cat >"$W/facts.jsonl" <<'END'
{"goal": "find:fork", "memory": {"put": {"cup": "{position:sofa,state:none,object:cup}\n", "fork": "{position:cup,state:none,object:fork}\n"}}}
{"goal": "find:fork"}
{"goal": "find:fork", "memory": {"remove": ["last answer"]}}
{"goal": "find:fork", "memory": {"put": {"last answer": "{position:cup,state:none,object:fork}\n"}}}
END
tell a --inputs "$W/facts.jsonl"
check "four questions are answered" test $? -eq 0 -a "$(wc -l <"$W/out")" -eq 4
check "the answer is a segment of the next prompt; what comes with an observation counts after it" \
    test "$(counts)" = "2 remembered, 2 in the prompt;3 remembered, 3 in the prompt;2 remembered, 2 in the prompt;3 remembered, 3 in the prompt;"
first=$(said)
for policy in default slack_k; do
    for try in 1 2 3; do
        tell "again_$policy.$try" --inputs "$W/facts.jsonl" --policy $policy
        [ "$(said)" = "$first" ] && break
    done
    check "the same again, policy $policy" test "$(said)" = "$first"
done
tell b --inputs "$W/facts.jsonl" --frames 1
check "the file has what was said last, after one frame" grep -qa "last answer:sofa" "$W/b"
tell b --input goal=find:fork
check "and a restart recalls it" test "$(counts)" = "3 remembered, 3 in the prompt;"
tell chaos --inputs "$W/facts.jsonl" --policy chaos
check "policy chaos: frames run" test $? -eq 0 -a "$(wc -l <"$W/out")" -eq 4

# Event by event, every launch 1 ms.
"$T" simulate "$G" --launch-ms 1 -n 3 --trace "$W/trace" >"$W/out" 2>"$W/err"
check "simulate: the events that are expected" cmp "$W/trace" tests/graphs/g18_answer_is_remembered.jsonl
for policy in slack_k chaos; do
    "$T" simulate "$G" --launch-ms 1 -n 200 --policy $policy --trace "$W/trace" >"$W/out" 2>"$W/err"
    check "simulate, policy $policy: what is finished is remembered, what is given up is not" test \
        "$(grep -c '"op":"remember"' "$W/trace")" -eq "$(grep -c '"event":"finish"' "$W/trace")" -a \
        "$(grep -c '"event":"finish"' "$W/trace")" -gt 0
done
"$T" policy check policies/slack_k.lua --pipeline "$G" --costs "$C" -n 200 >"$W/out" 2>"$W/err"
check "policy check knows the graph" test $? -eq 0
"$T" graph -T mermaid "$G" >"$W/out" 2>"$W/err"
check "graph draws it" grep -q "keep.*segment 'last answer'" "$W/out"

# Against the interpreter: every node, request and step a launch of its own.
# A text that ends a frame later is remembered a frame later, so only a policy that looks at no time
# can be compared: chaos.
as_interpreted() {
    for try in 1 2 3 4 5; do
        for how in --interpret "--threads 2"; do
            rm -f "$W/memory"
            timeout 120 "$T" run "$G" --random-weights 1 --size tiny --random-inputs 1 -n 20 --policy chaos --format json \
                --set "resources.mem.store=$W/memory" $how 2>"$W/err" >"$W/out" </dev/null
            grep -o '"tokens":\[[0-9,]*\]' "$W/out" >"$W/$how"
        done
        cmp -s "$W/--interpret" "$W/--threads 2" && [ -s "$W/--interpret" ] && return 0
    done
    return 1
}
check "policy chaos: the interpreter's bytes" as_interpreted
echo "1..$n"
exit $failed
