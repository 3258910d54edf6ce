#!/bin/sh
# host_path.t - instructions that the host spends on a frame beside the arithmetic: the loop, its views,
# the policy and what it tells. Counted by callgrind on the virtual clock, so no noise is in it.
# usage: tests/host_path.t [PROGRAM] [--update]; from the root.
#
# tests/host_path.expected has them for one compiler. More than 5 % above is a failure, more than 5 %
# below asks for an update of the file, so that what was gained is kept. Another compiler's program is
# counted and printed alone. Behind them the flight recorder's share of the host's time is printed.
update=
for word in "$@"; do [ "$word" != --update ] || update=1; done
. "$(dirname "$0")/opening.sh"
expected=tests/host_path.expected
if ! command -v valgrind >/dev/null 2>&1; then
    [ -z "${CI:-}" ] || { echo "1..1"; echo "not ok 1 - there is valgrind"; exit 1; }
    echo "1..0 # SKIP no valgrind"
    exit 0
fi
compilers=$(readelf -p .comment "$T" | sed -n 's/^.*\] *//p') # ours is the first; CUDA's runtime brings its own
compiler=$(echo "$compilers" | head -n 1)

# count PIPELINE FRAMES: instructions in the loop's frames.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$W/profile" --toggle-collect=tec_loop_run_sessions \
        "$T" simulate "$1" --random-weights 1 --size tiny --launch-ms 5 --frames "$2" \
        >"$W/out" 2>"$W/err" </dev/null || return 1
    sed -n 's/^==[0-9]*== Collected : //p' "$W/err"
}

[ -z "$update" ] || printf '# instructions of the host a frame: tests/host_path.t --update\ncompiler %s\n' "$compiler" >"$W/new"
known=$(sed -n 's/^compiler //p' "$expected")
for pipeline in demo_metaworld openvla_ring demo_memory graphs/g24_many_robots planner_and_arm; do
    many=$(count pipelines/$pipeline.lua 250) # with what the loop does once: up to 8 % of it (planner_and_arm)
    ok $? "$pipeline is simulated" || continue
    frame=$((many / 250))
    [ -z "$update" ] || { echo "$pipeline $frame" >>"$W/new"; continue; }
    want=$(sed -n "s|^$pipeline ||p" "$expected")
    if ! echo "$compilers" | grep -qxF "$known"; then
        echo "# $pipeline: $frame instructions a frame; $expected has $want by $known"
        continue
    fi
    [ "$((frame * 100))" -le "$((want * 105))" ]
    ok $? "$pipeline: $frame instructions a frame, at most 5 % more than $want"
    [ "$((frame * 100))" -ge "$((want * 95))" ]
    ok $? "$pipeline: $frame, at least 95 % of $want: else keep the gain with --update"
done
[ -z "$update" ] || cp "$W/new" "$expected"

# What the flight recorder takes of the host's time. Times are no checks: they are printed.
recorder=$(dirname "$T")/recorder.t
if [ -x "$recorder" ]; then
    "$T" run pipelines/demo_metaworld.lua --random-inputs 1 -n 100 --threads 1 --record "$W/host.mcap" >"$W/out" 2>"$W/err" &&
        "$T" top "$W/host.mcap" >"$W/top" 2>"$W/err"
    ok $? "the demo's host is timed"
    host=$(sed -n 's/.*host p50 \([0-9]*\) us.*/\1/p' "$W/top")
    kept=$("$recorder" 'a_frame_of_the_demo*' 2>/dev/null | sed -n 's/^# to keep .* takes \([0-9]*\) ns$/\1/p')
    awk -v host="$host" -v kept="$kept" 'BEGIN {
        if (host > 0 && kept > 0)
            printf "# flight recorder: %d ns a frame, %.2f %% of the %d us that the host takes\n", kept, kept / host / 10, host
    }'
fi
echo "1..$n"
exit $failed
