#!/bin/sh
# flow_models.t - flows that are wired as no shipped one, descriptions of words alone, give the velocities and actions of
# a second forward, written in numpy: one over rows of the prompt, and over the prompt's keys one that each seed draws.
# usage: tests/flow_models.t [PROGRAM] [SEEDS [SEEDS]]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
mkdir -p "$W/root/pipelines" "$W/root/policies" && cp -r pipelines/models "$W/root/pipelines/models" && cp tests/flow_models/*.lua "$W/root/pipelines/models/"

# judge FOLDER DTYPE TEXT
judge() {
    "$T" verify --format text --dtype "$2" --root "$W/root" "$1" >"$W/out" 2>"$W/err"
    status=$?
    grep -v '^ok' "$W/out" >>"$W/err"
    ok $status "$3"
}

for seed in ${2:-1 2 3}; do
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/flow_models.py "$W/$seed" "$seed" || exit 1
    judge "$W/$seed" f32 "wired in another way, seed $seed"
    judge "$W/$seed" bf16 "and with rounded matrices"
done
for seed in ${3:-0 1 2 3 4 5 6 7}; do
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/flow_prompts.py "$W/p$seed" "$seed" || exit 1
    judge "$W/p$seed" f32 "over a prompt's keys, seed $seed"
    judge "$W/p$seed" bf16 "and with rounded matrices"
    judge "$W/p$seed.rounded" bf16 "and those are rounded that say bf16, no others"
done
echo "1..$n"
exit $failed
