#!/bin/sh
# bench.t - the verb bench: rows and fields that others rely on, refusals with their exit code.
. "$(dirname "$0")/opening.sh"
demo=pipelines/demo_metaworld.lua
few="--frames 4 --warmup 2 --rounds 2"
json=$("$T" bench $demo --policy oxygen,isolated --sweep k=2,4 $few --format json)
ok $? "it ends well"
for field in machine commit command rows frame_us p999 action_us action_hz tokens_s mean_batch \
    host_us peak_bytes age_us worst launches allocations repeat; do
    case $json in *"\"$field\""*) ok 0 "the report has $field" ;; *) ok 1 "the report has $field" ;; esac
done
[ "$(printf '%s\n' "$json" | grep -c '"policy": ')" = 3 ]
ok $? "a row for each value, one for the policy without that parameter"
[ "$(printf '%s\n' "$json" | grep '"actions": "' | sort -u | wc -l)" = 1 ] &&
    ! printf '%s\n' "$json" | grep -q '"equal": false'
ok $? "actions are the same in every turn and row"
"$T" bench $demo --policy oxygen --sweep speed=1,2 $few >/dev/null 2>&1
[ $? = 2 ]; ok $? "a parameter that nobody has is refused"
"$T" bench $demo --node tlak $few >/dev/null 2>&1
[ $? = 2 ]; ok $? "an unknown node is refused"
"$T" bench $demo $few | grep -q 'worst frame'
ok $? "the worst frame is printed"
echo "1..$n"
exit $failed
