#!/bin/sh
# decode_on_frame.t - decode straight on a kv.frame does what one slot of a kv.requests does: sizes,
# events and texts.
# usage: tests/decode_on_frame.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
G=pipelines/graphs/g15_decode_on_frame.lua
P=tests/pipelines/graphs/on_frame
answers="--set resources.answers.slots=1 --set resources.answers.tokens=1040 --set nodes.answer.max_tokens=16 --set nodes.answer.supersede=true"
random="--random-weights 1 --size tiny"

# check TEXT CONDITION...: one line of TAP.
check() {
    text=$1 n=$((n + 1))
    shift
    if "$@" >"$W/said" 2>&1; then echo "ok $n - $text"
    else failed=1; echo "not ok $n - $text"; head -c 800 "$W/said" "$W/err" | sed 's/^/# /' >&2; fi
}

# both VERB ARGUMENTS...: of the pipeline on a kv.frame into $W/frame, of that with slots into $W/slots.
both() {
    verb=$1
    shift
    "$T" "$verb" $frame $random "$@" >"$W/frame" 2>"$W/err" && "$T" "$verb" $slots $random "$@" >"$W/slots" 2>"$W/err"
}
plan() { sed -n 's/.*\( [0-9]* captures.*device plan[^;]*\).*/\1/p' "$1"; }
same_plan() { both check --device cpu --threads 2 && [ -n "$(plan "$W/frame")" ] && [ "$(plan "$W/frame")" = "$(plan "$W/slots")" ]; }
same_commands() { both graph --commands --device cpu --threads 2 --tier ref && cmp "$W/frame" "$W/slots" && [ -s "$W/frame" ]; }
# Events are the same but for the name of the resource that keeps the tokens.
same_events() { # same_events POLICY
    both simulate --policy "$1" --launch-ms 1 -n 40 --trace /dev/stdout || return 1
    sed 's/"kv":"[a-z]*"/"kv":"-"/' "$W/frame" >"$W/a"
    sed 's/"kv":"[a-z]*"/"kv":"-"/' "$W/slots" >"$W/b"
    cmp "$W/a" "$W/b" && grep -q '"event":"tokens"' "$W/a"
}
texts() { grep -o '"request":[0-9]*,\|"tokens":\[[0-9,]*\]' "$1"; }
same_texts() {
    both run --random-inputs 1 -n 12 --threads 2 --policy chaos --drain --format json "$@" || return 1
    texts "$W/frame" >"$W/a"
    texts "$W/slots" >"$W/b"
    cmp "$W/a" "$W/b" && [ "$(grep -c '\[[0-9]' "$W/a")" -gt 2 ]
}

frame=$G slots="pipelines/qwen_chat.lua $answers"
for graph in "one chain" "two chains"; do
    check "$graph: the same captures and memory" same_plan
    check "$graph: the same commands" same_commands
    check "$graph: the same events under policy fill" same_events fill
    check "$graph: the same events under chaos" same_events chaos
    check "$graph: the same texts under chaos" same_texts
    check "$graph: the same texts of the interpreter" same_texts --interpret
    frame=$P.lua slots=${P}_requests.lua
done

# One text an observation: each prefill of the frames starts one, and ends the one before.
"$T" simulate $P.lua $random --policy fill --launch-ms 1 -n 20 --trace "$W/trace" >"$W/out" 2>"$W/err"
said() { grep '"node":"say"' "$W/trace" | grep -c "\"event\":\"$1\""; }
check "without spawn: a text for each prefill of the frames" test "$(said arrive)" -eq 20
check "and one for each change of a secondary prefill's text" \
    test "$(grep '"node":"answer"' "$W/trace" | grep -c '"event":"arrive"')" -eq 1
"$T" simulate $P.lua $random --policy default --launch-ms 1 -n 20 --trace "$W/trace" >"$W/out" 2>"$W/err"
check "an unfinished text ends where a new observation begins" \
    test "$(grep -c '"event":"shed".*"reason":"superseded"' "$W/trace")" -eq 19
"$T" graph -T mermaid $P.lua >"$W/out" 2>"$W/err"
check "graph draws trigger and end" grep -q "say.*a request when obs is new.*it ends the older ones" "$W/out"
"$T" check $G --set nodes.answer.supersede=false >"$W/out" 2>&1
check "supersede = false is refused: there is one text at a time" grep -q "E024.*one text at a time" "$W/out"
"$T" profile $P.lua $random --threads 1 -n 6 --rounds 1 -o "$W/costs" >"$W/out" 2>"$W/err"
check "profile measures it" grep -q '"node": *"say"' "$W/costs"
"$T" policy check policies/slack_k.lua --pipeline $P.lua $random --costs "$W/costs" -n 200 >"$W/out" 2>"$W/err"
check "policy check knows the graph" test $? -eq 0
echo "1..$n"
exit $failed
