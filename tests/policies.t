#!/bin/sh
# policies.t - the verb policy: unit tests of the bundled policies, and that wrong ones are seen.
. "$(dirname "$0")/opening.sh"
# says NAME STATUS TEXT ARGS...: the exit status, and a part of what is printed.
says() {
    name=$1 status=$2 text=$3
    shift 3
    out=$("$T" policy "$@" 2>&1)
    got=$?
    case $out in *"$text"*) [ $got = "$status" ]; ok $? "$name" ;;
    *) ok 1 "$name"; echo "# $out" | head -n 5 >&2 ;; esac
}
echo 'return policy { name = "x", api = 1, plan = nosuch }' >"$W/wrong.lua"
echo '{"schema":1,"unit":"us","variants":[{"node":"other","point":{},"n":1,"min":1,"p50":1,"p99":1,"p999":1,"max":1}]}' >"$W/other.costs"

for file in tests/policies/*.lua; do
    grep -q 'tectum.test' "$file" || continue
    says "$(basename "$file" .lua)" 0 ", 0 not ok" test "$file"
done
for policy in policies/*.lua; do
    name=$(basename "$policy" .lua)
    grep -qE "policy = \"$name\"|of[ (]\"$name\"" tests/policies/*.lua
    ok $? "$name has a unit test"
done

# The gate of a ring: bubbles in its chaos, and a depth that does not fit is the policy's fault.
python3 - >"$W/ring.costs" 2>/dev/null <<'END' || : >"$W/ring.costs"
import json
rows = [("packed", {"decode": r}, 20000 + 500 * r) for r in range(7)]
rows += [("decode", {"batch": r}, 3000 + 100 * r) for r in range(1, 7)]
print(json.dumps({"schema": 1, "unit": "us", "variants": [
    {"node": node, "point": point, "n": 100, "min": us, "p50": us, "p99": us + 500,
     "p999": us + 600, "max": us + 700} for node, point, us in rows]}))
END
if [ -s "$W/ring.costs" ]; then
    gate="--pipeline pipelines/openvla_ring.lua --costs $W/ring.costs"
    says "actionflow passes the gate" 0 "9 checks, 0 not ok" check policies/actionflow.lua $gate --param depth=0
    says "actionflow_fresh does" 0 "9 checks, 0 not ok" check policies/actionflow_fresh.lua $gate
    says "a depth that does not fit does not" 1 "a deeper ring would have been in time" \
        check policies/actionflow.lua $gate --param depth=1
fi

# A wrong expectation is seen, with its place and both sides; every one of them.
wrong=tests/policies/wrong/expects.lua
says "a wrong expectation" 1 "$wrong:4: decode: expected { 5, 4 }, decided { 5, 5 }" test $wrong
expected=$(grep -c 't:expect' $wrong)
[ "$("$T" policy test $wrong | grep -c '^FAIL')" = "$expected" ]; ok $? "all $expected are seen"
"$T" policy test $wrong --format json | grep -q '^{"ok": false, "checks": \[{"name": "tests/policies/wrong/expects.lua:4: decode", "ok": false, "detail": "expected'
ok $? "json has ok and checks of name, ok and detail"
"$T" policy test tests/policies/edf.lua tests/policies/oxygen.lua --format json | grep -c . | grep -q '^1$'
ok $? "json is one object for all files"

# try NAME STATUS TEXT SCRIPT: a test file with this text after the usual first line.
try() {
    { echo 'local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "oxygen" }'; echo "$4"; } >"$W/t.lua"
    says "$1" "$2" "$3" test "$W/t.lua"
}
try "a test that expects nothing" 1 "nothing is expected" 't:frame { nreq = 1 }'
try "an unknown field" 1 "t.lua:2: unknown field 'slak_us' in a frame, did you mean 'slack_us'?" 't:frame { slak_us = 1 }'
try "an unknown expectation" 1 "did you mean 'decode'?" 't:frame {} t:expect { decod = {} }'
try "an unknown method" 1 "no method 'fame'" 't:fame {}'
try "nothing asked yet" 1 "expect comes after" 't:expect { decode = {} }'
try "an expectation of another call" 1 "'victim' comes after t:evict" 't:frame {} t:expect { victim = 1 }'
try "an error nobody expects" 1 "t.lua:2: the policy failed" 't:frame { nreq = 1, params = { k = 3 } } t:observe { tokens = 1 } t:frame { nreq = 1, cost = { decode = 0/0 } } t:expect { decode = { 1 } } error "the policy failed"'
try "an unknown node" 1 "no node 'tlak'" 't:frame { requests = { { node = "tlak" } } }'
try "an unknown parameter" 1 "did you mean 'k'?" 't:frame { params = { kk = 3 } }'
try "a value out of range" 1 "must be a whole number from 0 to 64" 't:frame { nreq = 65 }'
try "rows out of order" 1 "order of id" 't:frame { requests = { { id = 2 }, { id = 2 } } }'
try "an endless loop" 1 "instruction budget used up" 'while true do end'
try "too much memory" 1 "more memory than allowed" 'local x = {} for i = 1, 1e9 do x[i] = {} end'
try "no policy of that name" 1 "did you mean 'oxygen'?" 'tectum.test { pipeline = "pi05_aloha.lua", policy = "oxigen" }'
try "no pipeline of that name" 1 "No such file" 'tectum.test { pipeline = "nowhere.lua", policy = "oxygen" }'
try "a wrong field of the pipeline" 1 "frame period" 'tectum.test { pipeline = "pi05_aloha.lua", policy = "oxygen", set = { "nodes.act.deadline.ms=120" } }'
echo 'local t = tectum.test {' >"$W/t.lua"
says "a file that is no Lua" 3 "t.lua:2:" test "$W/t.lua"
says "a policy where its tests are expected" 3 "policies/edf.lua: this is a policy, not a file of tests" test policies/edf.lua
says "a file that is not there" 3 "No such file" test "$W/none.lua"
says "no file" 2 "a test file is missing" test
says "an unknown action" 2 "status|reset|dump; did you mean 'test'?" tets
says "no action" 2 "what to do"

# The gate: fit ones pass, each unfit one fails its check and no other.
robot="--pipeline tests/golden/schedules/paced_edf/pipeline.lua --costs tests/golden/schedules/paced_edf/costs.json"
tight="--set frame.period_ms=118 --set nodes.act.deadline.ms=118 --set guard.hard_us=50000"
for fit in slack_k "edf --param k=3" "objective --clock saturated"; do
    says "$fit is fit" 0 "9 checks, 0 not ok" check $fit $robot --set guard.soft_us=1000 --set guard.hard_us=50000
done
# unfit NAME CHECK OPTIONS...
unfit() {
    name=$1 wanted=$2
    shift 2
    out=$("$T" policy check "$name" $robot $tight "$@")
    [ $? = 1 ] && [ "$(printf '%s\n' "$out" | grep -c '^FAIL')" = 1 ] &&
        printf '%s\n' "$out" | grep -q "^FAIL  $wanted:"
    ok $? "$(basename "$name" .lua) fails '$wanted' and nothing else"
    [ $failed = 0 ] || printf '%s\n' "$out" | grep '^FAIL' | sed 's/^/# /' >&2
}
slow="--set guard.soft_us=1000"
for one in failure:"no failure" allocation:"no allocation" starvation:"no starvation" \
    deadline:"hard deadline" chaos:chaos migrate:migrate; do
    unfit "tests/policies/unfit/${one%%:*}.lua" "${one#*:}" $slow
done
unfit tests/policies/unfit/budget.lua budget --set guard.soft_us=20
unfit tests/policies/unfit/lattice.lua lattice $slow --most-snapped 50
unfit default "no starvation" $slow
says "a request that is never heard is what fails, not one that waits as long as it may" 1 \
    "FAIL  no starvation: 608 of 616 admitted requests ran out of time without a token, none may
" check default $robot $tight $slow
says "one that waits too long is" 1 "; request 0 waited 26 frames for a token, 1 are allowed" check default $robot $tight $slow --patience 1
"$T" policy check slack_k $robot --format json | grep -q '^{"ok": true, "checks": \[{"name": "no failure", "ok": true, "detail": "'
ok $? "the gate's json"
says "weights that are not there" 3 "/none/here: there is no such" check slack_k --pipeline pipelines/demo_metaworld.lua \
    --costs tests/golden/schedules/paced_edf/costs.json --weights /none/here
says "a policy that cannot be loaded" 3 "unknown name 'nosuch'" check "$W/wrong.lua" $robot
says "a pipeline where a policy is expected" 3 "this is a pipeline file, not a policy" check tests/golden/schedules/paced_edf/pipeline.lua $robot
says "no costs" 2 "needs --pipeline FILE and --costs FILE" check slack_k --pipeline pipelines/pi05_aloha.lua
says "costs of another pipeline" 3 "no row for node" check slack_k --pipeline tests/golden/schedules/paced_edf/pipeline.lua --costs "$W/other.costs"
says "options that test does not take" 2 "takes files and --format" test tests/policies/edf.lua --param k=3

# A policy that hangs is ended, and said so.
printf 'return policy { name = "hang", api = 1, plan = function() while true do end end }' >"$W/hang.lua"
printf 'local t = tectum.test { pipeline = "pi05_aloha.lua", policy = "hang.lua" }\nt:frame {}\nt:expect { decode = {} }' >"$W/t.lua"
says "a policy that hangs" 1 "the policy failed: policy 'hang': " test "$W/t.lua"
cd / && says "from another folder" 0 ", 0 not ok" test "$OLDPWD/tests/policies/tool.lua"
echo "1..$n"
exit $failed
