#!/bin/sh
# simulate.t - `tectum simulate` from the outside: what the golden schedules do not show (bursts,
# cancellations, offsets of sessions, accidents by the thousand), the summary, and bad input.
# usage: tests/simulate.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
G=tests/golden/schedules

ok() { # ok STATUS TEXT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"
    else
        failed=1
        echo "not ok $n - $2"
        { head -n 5 "$W/err"; tail -n 5 "$W/trace"; } 2>/dev/null | cut -c 1-300 | sed 's/^/# /' >&2
    fi
}
# simulate CASE OPTION...: its pipeline and costs; the scenario is $W/s.json unless another is given
simulate() {
    case=$1
    shift
    timeout 60 "$T" simulate "$G/$case/pipeline.lua" --costs "$G/$case/costs.json" \
        --scenario "$W/s.json" --trace "$W/trace" "$@" >"$W/out" 2>"$W/err" </dev/null
}
scenario() { printf '{"schema":1,%s}\n' "$1" >"$W/s.json"; }
# lines PATTERN: how many events match
lines() { grep -c -- "$1" "$W/trace"; }
field() { sed -n "s/.*\"$1\": *\([-0-9.]*\).*/\1/p" "$W/out" | head -n 1; }
refused() { # refused STATUS TEXT-IN-ERROR WHAT
    [ "$status" -eq "$1" ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -q -- "$2" "$W/err" && [ ! -e "$W/trace" ]
    ok $? "$3: exit $1, one line"
}

# --- a burst of ten where there are eight slots, two of them cancelled ---------------------------
burst=$(awk 'BEGIN { for (i = 0; i < 10; i++) printf "%s{\"frame\":1,\"max_tokens\":%d}", i ? "," : "", 5 + i }')
scenario "\"clock\":\"saturated\",\"frames\":8,\"arrivals\":[$burst],\"cancel\":[{\"frame\":2,\"request\":3},{\"frame\":2,\"request\":99},{\"frame\":3,\"request\":3}]"
simulate oxy_random --policy oxygen --param k=5
ok $? "a burst runs"
[ "$(lines '"event":"refuse".*"no kv slot"')" -eq 2 ]; ok $? "two of ten find no slot"
[ "$(lines '"event":"cancel".*"request":3,"live":true')" -eq 1 ] &&
    [ "$(lines '"event":"cancel".*"request":3,"live":false')" -eq 1 ] &&
    [ "$(lines '"event":"cancel".*"request":99,"live":false')" -eq 1 ]
ok $? "cancelled once, and what is not alive changes nothing"
awk '/"event":"cancel".*"live":true/ { want = NR + 1 } NR == want && /"op":"remove".*"request":3/ { good = 1 }
    END { exit !good }' "$W/trace"
ok $? "its keys and values go with it"
[ "$(lines '"event":"finish"')" -eq 7 ]; ok $? "the others finish"

# --- text that is born when the instruction changes, and ends the one before ----------------------
scenario '"clock":"saturated","frames":12,"instruction":[{"frame":3},{"frame":5},{"frame":5,"session":"x"}]'
simulate oxy_random --policy oxygen --param k=5; [ $? -ne 0 ]; ok $? "an instruction of an unknown session is refused"
scenario '"clock":"saturated","frames":12,"instruction":[{"frame":3},{"frame":5}]'
simulate oxy_random --policy oxygen --param k=5 --set 'nodes.talk.spawn=on_change()' --set nodes.talk.supersede=true
ok $? "triggers run"
[ "$(grep '"event":"admit"' "$W/trace" | grep -o '"frame":[0-9]*' | tr '\n' ' ')" = '"frame":0 "frame":3 "frame":5 ' ]
ok $? "a request in the first frame and at each change"
[ "$(lines '"event":"shed".*"superseded"')" -eq 2 ] && [ "$(lines '"event":"finish"')" -eq 1 ]
ok $? "the older ones are superseded, the last one finishes"

# --- sessions that start apart -------------------------------------------------------------------
scenario '"clock":"paced","until_us":400000,"sessions":[
 {"name":"a","period_us":100000,"offset_us":0,"deadline_us":100000,"spawn_every":0},
 {"name":"b","period_us":100000,"offset_us":30000,"deadline_us":50000,"spawn_every":0},
 {"name":"c","period_us":100000,"offset_us":5000,"deadline_us":100000,"spawn_every":0}]'
simulate three_edf --policy default
ok $? "sessions with offsets run"
order=$(sed -n 's/.*"t_us":\([0-9]*\),"event":"frame",.*"session":"\(.\)".*/\2\1/p' "$W/trace" | head -n 4 | tr '\n' ' ')
[ "$order" = "a0 c10000 b30000 a100000 " ]; ok $? "each at its own tick: $order"
[ "$(lines '"event":"skip"')" -eq 0 ]; ok $? "no tick is skipped"

# --- language never delays an action -------------------------------------------------------------
accidents=$(awk 'BEGIN { srand(5); for (f = 0; f < 10000; f++) if (rand() < 0.1) {
    node = rand() < 0.5 ? "see" : rand() < 0.5 ? "act" : "talk"
    printf "%s{\"frame\":%d,\"node\":\"%s\",\"add_us\":%d}", c++ ? "," : "", f, node, node == "see" ? 57000 : node == "act" ? 21000 : 13000 } }')
scenario "\"clock\":\"paced\",\"frames\":10000,\"spikes\":[$accidents]"
for policy in slack_k "edf --param k=3"; do
    simulate paced_slack_k --policy $policy --format json
    ok $? "$policy: ten thousand frames, one in ten with a launch that takes twice as long"
    [ "$(field plan)" -eq 0 ] && [ "$(field gpu)" -gt 100 ] && [ "$(field tokens)" -gt 10000 ]
    ok $? "$policy: $(field missed) missed, by the plan $(field plan), by the device $(field gpu)"
done
simulate paced_slack_k --policy oxygen --param k=5 --format json
grep -q '"params": "k=5"' "$W/out"; ok $? "the summary names the policy's parameters"
[ "$(field plan)" -gt 1000 ]; ok $? "oxygen, which does not look at the clock, misses $(field plan) by its plan"

# --- the same again ------------------------------------------------------------------------------
scenario '"clock":"paced","frames":300'
simulate paced_slack_k --policy chaos --arrivals "poisson:1.5+lengths:5,20,0.3+cancel:0.2,2" --seed 4
cp "$W/trace" "$W/first"
simulate paced_slack_k --policy chaos --arrivals "poisson:1.5+lengths:5,20,0.3+cancel:0.2,2" --seed 4
cmp -s "$W/trace" "$W/first"; ok $? "a seed gives the same events"
simulate paced_slack_k --policy chaos --arrivals "poisson:1.5+lengths:5,20,0.3+cancel:0.2,2" --seed 5
! cmp -s "$W/trace" "$W/first"; ok $? "another seed does not"

# --- sizes of a checkpoint that is here ----------------------------------------------------------
timeout 60 "$T" simulate pipelines/demo_metaworld.lua --costs $G/oxy_fig3/costs.json --frames 5 --trace "$W/trace" >"$W/out" 2>"$W/err"
ok $? "a pipeline whose checkpoint says how large its model is"

# --- bad input -----------------------------------------------------------------------------------
rm -f "$W/trace"
try() { simulate oxy_fig3 --policy oxygen "$@"; status=$?; }
scenario '"clocks":"paced"'; try; refused 3 "did you mean 'clock'" "an unknown field"
scenario '"clock":"fast"'; try; refused 3 "not saturated or paced" "an unknown clock"
scenario '"frames":-1'; try; refused 3 "frames" "a negative number of frames"
scenario '"arrivals":[{"max_tokens":1}]'; try; refused 3 "arrivals\[0\]: there is no 'frame'" "an arrival without frame"
scenario '"spikes":[{"frame":1,"node":"sea","add_us":1}]'; try; refused 3 "no node is named 'sea'" "a spike of an unknown node"
scenario '"sessions":[{"name":"a","period_us":0}]'; try; refused 3 "sessions\[0\]" "a session without period"
scenario '"handout":{"actions":11,"dims":2}'; try; refused 3 "11 actions" "more actions than a chunk has"
printf '{"schema":1' >"$W/s.json"; try; refused 3 "line 1" "half a scenario"
printf '{"schema":2}' >"$W/s.json"; try; refused 3 "schema 1" "another schema"
scenario '"frames":3'; try --param q=1; refused 2 "no parameter 'q'" "an unknown parameter"
try --arrivals poison:1; refused 2 "poison" "unknown arrivals"
try --costs "$W/none.costs"; refused 2 "more than once\|twice" "costs twice"
cp $G/oxy_fig3/costs.json "$W/c.json"; sed -i 's/"talk"/"walk"/g' "$W/c.json"
timeout 9 "$T" simulate $G/oxy_fig3/pipeline.lua --costs "$W/c.json" --trace "$W/trace" >"$W/out" 2>"$W/err"
status=$?; refused 3 "no row for node 'talk'" "costs of another pipeline"
timeout 9 "$T" simulate $G/oxy_fig3/pipeline.lua --trace "$W/trace" >"$W/out" 2>"$W/err"
status=$?; refused 2 "give --costs" "no costs"
# --- the trace that doc/values.md explains ---------------------------------------------------------
timeout 60 "$T" simulate pipelines/graphs/g13_plan_is_prompt.lua --random-weights 1 --size tiny \
    --launch-ms 2 -n 40 --trace "$W/trace" >"$W/out" 2>"$W/err" </dev/null
sed -n '/^```json$/,/^```$/{/^{/p;}' doc/values.md >"$W/told"
grep -Fxf "$W/told" "$W/trace" >"$W/found"
[ -s "$W/told" ] && cmp -s "$W/told" "$W/found"; ok $? "doc/values.md: its lines are in the trace, in this order"
[ "$(grep -c . "$W/trace")" -eq "$(sed -n 's/^selection of the file.s \([0-9]*\),.*/\1/p' doc/values.md)" ]
ok $? "doc/values.md: the number of events"
echo "1..$n"
exit $failed
