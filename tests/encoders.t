#!/bin/sh
# encoders.t - random small sentence encoders of each architecture but MPNet, and of each pooling, give the
# vectors of a second forward, written in numpy; MPNet has golden cases. usage: tests/encoders.t [PROGRAM] [SEEDS]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
for seed in ${2:-1 2 3}; do
    "$python" tests/encoders.py "$W/$seed" "$seed" || exit 1
    for case in "$W/$seed"/*; do
        n=$((n + 1))
        if "$T" verify --format text --dtype f32 "$case" >"$W/out" 2>&1; then
            echo "ok $n - ${case##*/}, seed $seed"
        else
            failed=1
            echo "not ok $n - ${case##*/}, seed $seed"
            grep -v '^ok' "$W/out" | head -n 5 | sed 's/^/# /'
        fi
    done
done
echo "1..$n"
exit $failed
