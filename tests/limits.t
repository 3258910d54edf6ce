#!/bin/sh
# limits.t - a robot's limits from the outside: frames that follow each other, and paced ones.
# usage: tests/limits.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
I=$PWD/tests/golden/demo/episodes/inputs.safetensors

tectum() { timeout 60 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
out() { grep -q -- "$1" "$W/out"; ok $? "prints $1"; }
err() { grep -q -- "$1" "$W/err"; ok $? "says $1"; }
limits() { # limits LUA: the bundled robot with these
    printf 'local robot = include "robots/metaworld.lua"\nrobot.actions.limits = %s\n' "$1" >"$W/arm.lua"
    echo 'return extend("demo_metaworld.lua", { robot = robot })' >>"$W/arm.lua"
}
run() { tectum run "$W/arm.lua" --threads 1 --inputs "$W/button.jsonl" --format json "$@"; }
actions() { sed 's/.*"actions":\({[^}]*}\).*/\1/' "$W/out"; }
for i in 0 1 2; do
    printf '{"observation/image": "@%s#button.image[%d]", "observation/wrist_image": "@%s#button.wrist_image[%d]", ' \
        "$I" $i "$I" $i
    printf '"observation/state": "@%s#button.state[%d]", "prompt": "press the button"}\n' "$I" $i
done >"$W/button.jsonl"

# Without limits, and with those of the statistics, which these actions are within.
limits false
run; ok $? "no limits"; actions >"$W/free"
limits nil
run; actions >"$W/trained"; cmp -s "$W/free" "$W/trained"; ok $? "the statistics' change nothing"
[ ! -s "$W/err" ]; ok $? "and say nothing"

# What is beyond is clipped, held, or stops; it is counted and told.
limits '{ max = 0.5 }'
run; ok $? "clip is no failure"
[ "$(grep -c '"source":"fresh"' "$W/out")" -eq 3 ]; ok $? "clipped actions are the frame's own"
out '"trouble":"48 values beyond the robot.s limits, clipped: row 1, column 2 is 1.002'
[ "$(grep -c 'clipped' "$W/err")" -eq 1 ]; ok $? "one line in a second"
err '3 frames had actions beyond the robot.s limits'
actions | tr '[],' '\n\n\n' | awk '$1 ~ /^[-0-9.e]+$/ && $1 > 0.5 { bad = 1 } END { exit bad }'
ok $? "no value above the limit"
limits '{ max_step = 0.5, on = "hold" }'
run; out '"missed":true,"cause":"limits","source":"held"'
out 'held: row 1, column 1 changes by 0.525'
limits '{ max_step = 0.5, on = "stop" }'
run; out '"cause":"limits","source":"stopped"'

# Paced: the same, and the latch is the one of deadlines.
limits '{ min = { -0.5, false, false, false }, on = "stop" }'
run --clock paced --set frame.period_ms=300 --set nodes.act.deadline.ms=290
[ "$(grep -c '"cause":"limits".*"source":"stopped"\|"source":"stopped".*"cause":"limits"' "$W/out")" -ge 1 ]
ok $? "a paced robot stops"
[ "$(grep -c '"source":"stopped","actions":{"act":\[\]}' "$W/out")" -eq 3 ]
ok $? "until somebody resets it"
run --clock paced --set frame.period_ms=300 --set nodes.act.deadline.ms=290 --record "$W/stopped.mcap"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests python3 - "$W/stopped.mcap" <<'EOF'
import sys
from mcap_file import Recording
told = Recording(sys.argv[1]).of("/tectum/safety")
assert [(x["stopped"], x["stops"], x["resets"]) for x in told] == [(True, 1, 0)], told
EOF
ok $? "and its recording says so"
err '3 ticks, .* beyond limits'
limits '{ max = 0.5 }'
run --clock paced --set frame.period_ms=300 --set nodes.act.deadline.ms=290
out '"trouble":"48 values beyond'
err 'beyond limits'

# A description that is wrong.
limits '{ max = 0.5, low = 1 }'
run; [ $? -eq 3 ]; ok $? "an unknown field: exit 3"
err "actions.limits: unknown field 'low'"
printf 'local robot = include "robots/metaworld.lua"\nrobot.actions.low = { 1 }\n%s\n' \
    'return extend("demo_metaworld.lua", { robot = robot })' >"$W/arm.lua"
run; [ $? -eq 3 ]; ok $? "the old names are gone: exit 3"

# Commands that are changes are not repeated for ever.
printf 'return extend("demo_metaworld.lua", { nodes = { action { name = "act", deadline = hard { ms = 90, on_miss = "hold", limit = 0 } } } })' >"$W/hold.lua"
tectum check "$W/hold.lua"; ok $? "a warning is no error"
out "warning\[W108\]: commands of robot metaworld are changes: 'act' repeats them"
out '^ *--> .*hold.lua:1:109$'
tectum check pipelines/demo_metaworld.lua; ! grep -q W108 "$W/out"; ok $? "none where limit is said"
tectum check pipelines/demo_metaworld.lua --set frame.period_ms=250
out "warning\[W111\]: robot metaworld executes 8 actions at 80 Hz in 100 ms, the next observation"
out '^ --> --set:1:17$'
tectum check pipelines/demo_metaworld.lua --set inputs.observation/image.h=65
out "warning\[W110\]: input"; out '^ --> --set:1:28$'
tectum check pipelines/demo_metaworld.lua --set inputs.observation/image.optional=true
out "warning\[W110\]: input 'observation/image' is optional, but robot metaworld needs it"
out '^ --> --set:1:35$'
tectum run pipelines/demo_metaworld.lua --policy default --threads 1 --random-inputs 1 -n 1
err "warning\[W114\]: 'talk' never runs"
tectum check pipelines/demo_metaworld.lua; ! grep -q W11 "$W/out"; ok $? "none where all fits"
tectum check pipelines/demo_metaworld.lua --policy default
out "warning\[W114\]: 'talk' never runs: the default plan leaves text beside the hard deadline of 'act'"
tectum check "$W/hold.lua" --set nodes.act.deadline.on_miss=zeros; ! grep -q W108 "$W/out"
ok $? "none with zeros"
tectum run "$W/hold.lua" --threads 1 --inputs "$W/button.jsonl" --clock paced --format json --set frame.period_ms=50 \
    --set nodes.act.deadline.ms=0.01
[ "$(grep -c '"source":"fresh"' "$W/out")" -eq 0 ]; ok $? "three late ticks"
for i in 1 2 3; do cat "$W/button.jsonl"; done >"$W/long.jsonl"
tectum run "$W/hold.lua" --threads 1 --inputs "$W/long.jsonl" --clock paced --format json --set frame.period_ms=50 \
    --set nodes.act.deadline.ms=0.01
[ "$(grep -c '"source":"none"' "$W/out")" -eq 3 ] && [ "$(grep -c '"source":"stopped"' "$W/out")" -eq 6 ]
ok $? "the fourth one stops the robot"

# Noise, statistics and states from elsewhere.
{
    printf '\100\0\0\0\0\0\0\0%-64s' '{"x":{"dtype":"F32","shape":[16,4],"data_offsets":[0,256]}}'
    printf '\0\0\0\0\0\0\050\301' # 0, -10.5
    dd if=/dev/zero bs=248 count=1 2>/dev/null
} >"$W/noise.safetensors"
demo() { tectum run pipelines/demo_metaworld.lua --threads 1 "$@"; }
demo --inputs "$W/button.jsonl" --noise "@$W/noise.safetensors#x"; [ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ]
ok $? "noise of no normal draw: exit 3, one line"
err 'noise.safetensors#x: frame 0: element 2 is -10.5; standard normal noise is within +-10'
cp -r pipelines/checkpoints/metaworld "$W/weights"
stats=$W/weights/assets/metaworld/norm_stats.json
tr -d ' \n' <"$stats" | sed 's/"q99":\[\([^]]*\),1.0\]}}}$/"q99":[\1,1e300]}}}/' >"$W/stats"
cp "$W/stats" "$stats"
demo --inputs "$W/button.jsonl" --weights "$W/weights"; [ $? -eq 3 ]; ok $? "statistics of 1e300: exit 3"
err 'assets/metaworld/norm_stats.json: norm_stats.actions: q99\[3\] is 1e+300'
sed 's/"observation.state": "[^"]*"/"observation\/state": [0, 0.6, 1e7, 1]/' "$W/button.jsonl" >"$W/far.jsonl"
demo --inputs "$W/far.jsonl"; [ $? -eq 3 ]; ok $? "a state of 1e7: exit 3"
err 'observation/state: entry 3 is 1e+07'
echo "1..$n"
exit $failed
