#!/bin/sh
# text_models.t - random small models of each family of texts give the logits and tokens of a second
# forward, written in numpy. usage: tests/text_models.t [PROGRAM] [SEEDS]
cd "$(dirname "$0")/.." || exit 1
T=${1:-${TECTUM:-}} seeds=${2:-"1 2 3 4 5 6"}
[ -n "$T" ] || for T in build/release/tectum build/*/tectum; do [ -x "$T" ] && break; done
for python in /usr/bin/python3 python3; do "$python" -c "import numpy" 2>/dev/null && break; python=; done
if [ ! -x "$T" ] || [ -z "$python" ]; then
    echo "1..0 # SKIP no program, or no python3 with numpy"
    exit 0
fi
W=$(mktemp -d) || exit 1
trap 'rm -rf "$W"' EXIT
n=0 failed=0
for seed in $seeds; do
    "$python" tests/text_models.py "$W/$seed" "$seed" || exit 1
    for family in qwen3 llama gemma2 gemma3_text; do
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
