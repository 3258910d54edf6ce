#!/bin/sh
# text_models.t - random small models of each family of texts give the logits and tokens of a second
# forward, written in numpy. usage: tests/text_models.t [PROGRAM] [SEEDS]
. "$(dirname "$0")/opening.sh"
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
[ -n "$python" ] || { echo "1..0 # SKIP no python3 with numpy"; exit 0; }
seeds=${2:-"1 2 3 4 5 6"}
for seed in $seeds; do
    "$python" tests/text_models.py "$W/$seed" "$seed" || exit 1
    for family in qwen3 llama gemma2 gemma3_text smolvlm; do
        n=$((n + 1))
        if "$T" verify --format text --dtype f32 "$W/$seed/$family" >"$W/out" 2>&1; then
            echo "ok $n - $family, seed $seed"
        else
            failed=1
            echo "not ok $n - $family, seed $seed"
            grep -v '^ok' "$W/out" | head -n 5 | sed 's/^/# /'
        fi
    done
done
echo "1..$n"
exit $failed
