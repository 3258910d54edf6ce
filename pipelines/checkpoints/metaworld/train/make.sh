#!/bin/sh
# make.sh - the shipped checkpoints and recorded episodes from nothing, with the time each step took.
# usage: pipelines/checkpoints/metaworld/train/make.sh OUT [MINUTES of the main training; 66]
# About two and a half hours (the sum of its measured parts). It installs the simulator and PyTorch (tools/demo/setup.sh --train).
set -eu
cd "$(dirname "$0")/../../../.."
here=pipelines/checkpoints/metaworld/train
case ${1:--} in -*) set -- ;; esac
[ $# -ge 1 ] || { echo "usage: pipelines/checkpoints/metaworld/train/make.sh OUT [MINUTES]" >&2; exit 2; }
out=$1 minutes=${2:-66}
sh tools/demo/setup.sh --train
python="build/demo/venv/bin/python -W ignore"
mkdir -p "$out"

. tools/demo/step.sh
train() { $python $here/train.py "$@"; }
record() { $python $here/record.py "$@"; }

step "recording the experts" record "$out/demos" --demos 400
step "the training" train "$out/demos" "$out/metaworld" --minutes "$minutes"
step "recording what the policy gets into" record "$out/driven" --driver "$out/metaworld" \
    --tasks faucet_open,faucet_close,drawer_close --demos 160 --seed 30000
step "the training for old observations" train "$out/demos,$out/driven" "$out/metaworld_aged" \
    --init "$out/metaworld" --ages 8 --lr 1.3e-3 --minutes "$minutes"
for name in metaworld metaworld_aged; do
    step "export of $name" $python $here/export.py "$out/$name" "$out/shipped/$name"
done
step "recorded episodes" $python $here/cases.py "$out/shipped/metaworld" "$out/shipped/metaworld/episodes"
step "recorded episodes of old observations" $python $here/cases.py "$out/shipped/metaworld_aged" \
    "$out/shipped/metaworld_aged/episodes" --age 8 --given --tasks faucet_close,drawer_open --seed 700001
