#!/bin/sh
# bench.t - the verb bench: rows and fields that others rely on, refusals with their exit code.
cd "$(dirname "$0")/.." || exit 1
tectum=
for preset in release dev clang asan; do
    [ -n "$tectum" ] || [ ! -x "build/$preset/tectum" ] || tectum=build/$preset/tectum
done
if [ -z "$tectum" ]; then
    echo "1..0 # SKIP tectum is not built"
    exit 0
fi
n=0 bad=0
check() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"
    else bad=1; echo "not ok $n - $2"; fi
}
demo=pipelines/demo_metaworld.lua
few="--frames 4 --warmup 2 --rounds 2"
json=$("$tectum" bench $demo --policy oxygen,isolated --sweep k=2,4 $few --format json)
check $? "it ends well"
for field in machine commit command rows frame_us p999 action_us action_hz tokens_s mean_batch \
    host_us peak_bytes age_us worst launches allocations repeat; do
    case $json in *"\"$field\""*) check 0 "the report has $field" ;; *) check 1 "the report has $field" ;; esac
done
[ "$(printf '%s\n' "$json" | grep -c '"policy": ')" = 3 ]
check $? "a row for each value, one for the policy without that parameter"
[ "$(printf '%s\n' "$json" | grep '"actions": "' | sort -u | wc -l)" = 1 ] &&
    ! printf '%s\n' "$json" | grep -q '"equal": false'
check $? "actions are the same in every turn and row"
"$tectum" bench $demo --policy oxygen --sweep speed=1,2 $few >/dev/null 2>&1
[ $? = 2 ]; check $? "a parameter that nobody has is refused"
"$tectum" bench $demo --node tlak $few >/dev/null 2>&1
[ $? = 2 ]; check $? "an unknown node is refused"
"$tectum" bench $demo $few | grep -q 'worst frame'
check $? "the worst frame is printed"
echo "1..$n"
exit $bad
