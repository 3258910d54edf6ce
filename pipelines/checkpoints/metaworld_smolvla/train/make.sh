#!/bin/sh
# make.sh - the shipped SmolVLA and its recorded observations from nothing, with the time each step took.
# usage: pipelines/checkpoints/metaworld_smolvla/train/make.sh OUT
# It installs the simulator and PyTorch (tools/demo/setup.sh --train). build/release/tectum must be built.
set -eu
cd "$(dirname "$0")/../../../.."
robot=pipelines/checkpoints/metaworld_smolvla
here=$robot/train record=pipelines/checkpoints/metaworld/train/record.py
case ${1:--} in -*) set -- ;; esac
[ $# -eq 1 ] || { echo "usage: pipelines/checkpoints/metaworld_smolvla/train/make.sh OUT" >&2; exit 2; }
out=$1 server=
sh tools/demo/setup.sh --train
python="build/demo/venv/bin/python -W ignore"
mkdir -p "$out"

. tools/demo/step.sh

step "holding the model to LeRobot's numbers" $python $here/golden.py
step "recording the experts" $python $record "$out/demos/0" --tasks button,drawer_open,drawer_close --demos 60
step "recording more of them" $python $record "$out/demos/1" --tasks button,drawer_open,drawer_close --demos 40 --seed 20060
step "recording one drawer more" $python $record "$out/demos/2" --tasks drawer_close --demos 40 --seed 20120
step "the training" $python $here/learn.py "$out/demos" "$out/metaworld_smolvla" --steps 420 --vlm $robot/vlm
rm "$out/metaworld_smolvla/seen.pt" "$out/metaworld_smolvla/state.pt"

build/release/tectum serve "$out/metaworld_smolvla" --late-ok --port 8750 >"$out/serve.log" &
server=$!
trap 'kill $server' EXIT
until grep -q '^serving' "$out/serve.log"; do kill -0 $server; sleep 0.2; done
step "an episode of each task" $python $here/play.py 127.0.0.1:8750 \
    --episodes 1 --seed 700000 --record "$out/metaworld_smolvla/episodes"
step "what PyTorch says of them" $python $here/judge.py "$out/metaworld_smolvla" "$out/metaworld_smolvla/episodes"
