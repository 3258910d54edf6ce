#!/bin/sh
# make.sh - planners for the table from three seeds, judged, with the time each step took.
# usage: pipelines/checkpoints/table_planner/train/make.sh [--try] OUT
#   --try  a few steps and goals of each: does the script run? What it makes knows nothing.
# It needs the environment of tools/demo/setup.sh --train.
set -eu
cd "$(dirname "$0")/../../../.."
here=pipelines/checkpoints/table_planner/train
first="" second="--steps 450 --lr 1e-3" third="--reuse --steps 3200 --lr 1.2e-3 --agains 16" goals=40
if [ "${1:-}" = --try ]; then
    first="--steps 4 --batch 1 --goals 1" second="$first --lr 1e-3" third="--reuse $second" goals=1
    shift
fi
case ${1:--} in -*) echo "usage: pipelines/checkpoints/table_planner/train/make.sh [--try] OUT" >&2; exit 2 ;; esac
out=$1
sh tools/demo/setup.sh --train
python="build/demo/venv/bin/python -W ignore"
mkdir -p "$out"

. tools/demo/step.sh
for seed in 0 1 2; do
    step "training of seed $seed" $python $here/learn.py "$out/first$seed" --seed $seed $first
    step "a second stretch of it" $python $here/learn.py "$out/second$seed" --init "$out/first$seed" --seed $seed $second
    step "a third, with reused keys" $python $here/learn.py "$out/seed$seed" --init "$out/second$seed" --seed $seed $third
    $python pipelines/checkpoints/planner/train/export.py "$out/seed$seed" "$out/bf16/seed$seed"
done
step "judging" $python $here/judge.py "$out/bf16/seed0" "$out/bf16/seed1" "$out/bf16/seed2" \
    --goals $goals --seed 7100
