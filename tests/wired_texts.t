#!/bin/sh
# wired_texts.t - texts and picture towers that are wired as no shipped one, descriptions of words alone that each seed
# draws, give the rows, logits and tokens of a second forward, written in numpy.
# usage: tests/wired_texts.t [PROGRAM] [SEEDS]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
mkdir -p "$W/root/pipelines" "$W/root/policies" && cp -r pipelines/models "$W/root/pipelines/models" && cp -r tests/flow_models/. "$W/root/pipelines/models/"

for seed in ${2:-0 1 2 3 4 5 6 7 8 9}; do
    for what in wired_texts wired_towers; do
        PYTHONDONTWRITEBYTECODE=1 "$python" tests/$what.py "$W/$what$seed" "$seed" || exit 1
        for dtype in f32 bf16; do
            "$T" verify --format text --dtype $dtype --root "$W/root" "$W/$what$seed" >"$W/out" 2>"$W/err"
            status=$?
            grep -v '^ok' "$W/out" >>"$W/err"
            ok $status "$what: seed $seed in $dtype"
        done
    done
done
echo "1..$n"
exit $failed
