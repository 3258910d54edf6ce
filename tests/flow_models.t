#!/bin/sh
# flow_models.t - a flow that is wired as no shipped one, a description of words alone, gives the velocities and actions
# of a second forward, written in numpy. usage: tests/flow_models.t [PROGRAM] [SEEDS]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
mkdir -p "$W/root/pipelines" "$W/root/policies" && cp -r pipelines/models "$W/root/pipelines/models" && cp tests/flow_models/wired.lua "$W/root/pipelines/models/"
seeds=${2:-"1 2 3"}
for seed in $seeds; do
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/flow_models.py "$W/$seed" "$seed" || exit 1
    "$T" verify --format text --dtype f32 --root "$W/root" "$W/$seed" >"$W/out" 2>"$W/err"
    status=$?
    grep -v '^ok' "$W/out" >>"$W/err"
    ok $status "wired in another way, seed $seed"
    "$T" verify --format text --dtype bf16 --root "$W/root" "$W/$seed" >"$W/out" 2>"$W/err"
    status=$?
    grep -v '^ok' "$W/out" >>"$W/err"
    ok $status "and with rounded matrices"
done
echo "1..$n"
exit $failed
