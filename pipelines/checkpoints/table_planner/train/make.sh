#!/bin/sh
# make.sh - planners for the table from three seeds, judged, with the time each step took.
# usage: pipelines/checkpoints/table_planner/train/make.sh OUT
# It needs the environment of tools/demo/setup.sh --train.
set -eu
cd "$(dirname "$0")/../../../.."
here=pipelines/checkpoints/table_planner/train
case ${1:--} in -*) echo "usage: pipelines/checkpoints/table_planner/train/make.sh OUT" >&2; exit 2 ;; esac
out=$1
sh tools/demo/setup.sh --train
python="build/demo/venv/bin/python -W ignore"
mkdir -p "$out"

. tools/demo/step.sh
for seed in 0 1 2; do
    step "training of seed $seed" $python $here/learn.py "$out/first$seed" --seed $seed
    step "a second stretch of it" $python $here/learn.py "$out/seed$seed" --init "$out/first$seed" --seed $seed \
        --steps 450 --lr 1e-3
    $python pipelines/checkpoints/planner/train/export.py "$out/seed$seed" "$out/bf16/seed$seed"
done
step "judging" $python $here/judge.py "$out/bf16/seed0" "$out/bf16/seed1" "$out/bf16/seed2" \
    --goals 40 --seed 7100
