#!/bin/sh
# make.sh - the shipped planner and its measurement from nothing, with the time each step took.
# usage: pipelines/checkpoints/planner/train/make.sh OUT
# Twelve trainings one after the other. The Python environment is made in build/planner/venv.
set -eu
cd "$(dirname "$0")/../../../.."
here=pipelines/checkpoints/planner/train
case ${1:--} in -*) echo "usage: pipelines/checkpoints/planner/train/make.sh OUT" >&2; exit 2 ;; esac
out=$1
venv=build/planner/venv needs=$here/requirements.txt
python=$venv/bin/python
mkdir -p "$out"

# The build of PyTorch for the CPU where that index can be reached, else the large one.
if ! cmp -s $needs $venv/requirements.txt; then
    rm -rf $venv
    python3 -m venv $venv
    $venv/bin/pip install -q --retries 0 --timeout 15 --no-deps --index-url https://download.pytorch.org/whl/cpu \
        "$(grep '^torch==' $needs)" || echo "make: no PyTorch for the CPU alone; taking the package index's (about 5 GB)" >&2
    $venv/bin/pip install -q -r $needs
    cp $needs $venv/requirements.txt
fi

. tools/demo/step.sh

# ready NAME OPTIONS...: trained and rounded to bf16
ready() {
    name=$1
    shift
    step "training of $name" $python $here/train.py "$out/$name" "$@"
    $python $here/export.py "$out/$name" "$out/bf16/$name"
}

# What ships: 12 objects, two hops tried.
ready shipped
$python $here/questions.py "$out/questions.jsonl"
step "the evaluation" $python $here/evaluate.py "$out/questions.jsonl" "$out/shipped.json" shipped="$out/bf16/shipped"
# Three seeds with and without the aid: 8 objects, one hop.
runs=
for seed in 0 1 2; do
    ready notes$seed --seed $seed --last 4 --steps 600
    ready plain$seed --seed $seed --last 4 --steps 600 --notes 0
    runs="$runs notes$seed=$out/bf16/notes$seed plain$seed=$out/bf16/plain$seed"
done
# Those that had not learned the task by then, three times as long.
for name in notes1 notes2 plain0 plain1 plain2; do
    case $name in plain*) notes=0 ;; *) notes=0.5 ;; esac
    ready long$name --seed "${name#?????}" --last 4 --steps 1800 --notes $notes
    runs="$runs long$name=$out/bf16/long$name"
done
$python $here/questions.py "$out/questions8.jsonl" --objects 8
# shellcheck disable=SC2086 # runs is a list
step "the evaluation of seeds" $python $here/evaluate.py "$out/questions8.jsonl" "$out/seeds.json" \
    --ratios 0.2,0.3,0.4,0.6 $runs
$python $here/report.py "$out/shipped.json"
$python $here/report.py "$out/seeds.json" --apart
