#!/bin/sh
# make.sh - the shipped OpenVLA of the sliding button from nothing, with the time each step took.
# usage: pipelines/checkpoints/metaworld_token/train/make.sh OUT
# It installs the simulator and PyTorch (tools/demo/setup.sh --train).
set -eu
cd "$(dirname "$0")/../../../.."
here=pipelines/checkpoints/metaworld_token/train
case ${1:--} in -*) set -- ;; esac
[ $# -eq 1 ] || { echo "usage: pipelines/checkpoints/metaworld_token/train/make.sh OUT" >&2; exit 2; }
out=$1
sh tools/demo/setup.sh --train
python="build/demo/venv/bin/python -W ignore"
mkdir -p "$out"

. tools/demo/step.sh

for seed in 10000 20000; do
    step "recording the expert from seed $seed" $python $here/record.py "$out/$seed.npz" --seed $seed
done
step "the training" $python $here/train.py "$out/10000.npz,$out/20000.npz" "$out/trained"
step "export" $python $here/export.py "$out/trained" "$out/metaworld_token"
step "recorded observations" $python $here/cases.py "$out/metaworld_token" "$out/metaworld_token/episodes"
