#!/bin/sh
# table.t - the long task on a table: its goals in words, its scene and experts where the simulator is installed
# (tools/demo/setup.sh), and its scripts.
cd "$(dirname "$0")/.." || exit 1
n=0 bad=0
report() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else bad=1; echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /' >&2; fi
}
export PYTHONDONTWRITEBYTECODE=1
venv=build/demo/venv/bin/python
if command -v python3 >/dev/null 2>&1; then
    report "Python compiles" "$(python3 -c '
import sys
for name in sys.argv[1:]:
    compile(open(name).read(), name, "exec")' tools/table/*.py pipelines/checkpoints/table_*/train/*.py 2>&1)"
    report "what follows from goals and memory" "$(python3 tests/table_goals.py 2>&1)"
else n=$((n + 1)); echo "ok $n - Python compiles # SKIP no python3"; fi
if "$venv" -c 'import mujoco, metaworld' 2>/dev/null; then
    report "the scene is repeatable, and experts do their skills" "$("$venv" -W ignore tests/table_scene.py 2>&1)"
else n=$((n + 1)); echo "ok $n - the scene # SKIP no simulator: tools/demo/setup.sh"; fi
python=$venv
"$venv" -c 'import mujoco' 2>/dev/null || python=python3
if command -v "$python" >/dev/null 2>&1; then
    work=$(mktemp -d)
    report "who judges the bench" "$("$python" -W ignore tests/table_proofs.py "$work" 2>&1)"
    rm -rf "$work"
else n=$((n + 1)); echo "ok $n - who judges the bench # SKIP no python3"; fi
if "$venv" -c 'import torch' 2>/dev/null; then
    work=$(mktemp -d)
    report "a training that was stopped goes on as if it had not been" \
        "$("$venv" -W ignore tests/table_train.py "$work" 2>&1)"
    rm -rf "$work"
else n=$((n + 1)); echo "ok $n - the training # SKIP no PyTorch: tools/demo/setup.sh --train"; fi
tectum=${1:-${TECTUM:-build/release/tectum}}
if [ -x "$tectum" ] && command -v python3 >/dev/null 2>&1; then
    work=$(mktemp -d)
    report "the graph: skills in their order, a restart, a kill -9" "$(python3 tests/table_graph.py "$tectum" "$work" 2>&1)"
    for variant in no_memory no_planner rtc first_token words; do
        report "tools/table/$variant.lua is right" "$("$tectum" check tools/table/$variant.lua 2>&1 | grep -v ': ok \|^  ')"
    done
    rm -rf "$work"
    report "the planner in words, with its memory whole and with keys that are used again" "$(python3 tests/table_words.py "$tectum" 2>&1)"
else n=$((n + 1)); echo "ok $n - the graph # SKIP no program"; fi
report "the README names every file" "$(for file in tools/table/*.*; do
    grep -qF "\`$(basename "$file")\`" tools/table/README.md || echo "tools/table/README.md does not name $file"; done)"
echo "1..$n"
exit $bad
