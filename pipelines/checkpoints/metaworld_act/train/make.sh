#!/bin/sh
# make.sh - the shipped ACT and its recorded observations from nothing, with the time each step took.
# usage: pipelines/checkpoints/metaworld_act/train/make.sh OUT [MINUTES of the training; 50]
# It installs the simulator (tools/demo/setup.sh) and LeRobot (requirements.txt, into build/demo/lerobot, with PyTorch about 5 GB).
# PYTHON names the interpreter for LeRobot: 3.12 or newer. build/release/tectum must be built.
set -eu
cd "$(dirname "$0")/../../../.."
here=pipelines/checkpoints/metaworld_act/train record=pipelines/checkpoints/metaworld/train/record.py
case ${1:--} in -*) set -- ;; esac
[ $# -ge 1 ] || { echo "usage: pipelines/checkpoints/metaworld_act/train/make.sh OUT [MINUTES]" >&2; exit 2; }
out=$1 minutes=${2:-50} server=
sh tools/demo/setup.sh
lerobot=build/demo/lerobot
if [ ! -e $lerobot/complete ]; then
    "${PYTHON:-python3}" -m venv $lerobot
    $lerobot/bin/pip install -q -r $here/requirements.txt
    touch $lerobot/complete
fi
mkdir -p "$out"

. tools/demo/step.sh

step "recording the experts" build/demo/venv/bin/python -W ignore $record "$out/demos" \
    --tasks button,drawer_open,faucet_open --demos 300 --size 80 --horizon 24
step "the training" $lerobot/bin/python $here/train.py "$out/demos" "$out/metaworld_act" --minutes "$minutes"

build/release/tectum serve "$out/metaworld_act" --late-ok --port 8750 >"$out/serve.log" &
server=$!
trap 'kill $server' EXIT
until grep -q '^serving' "$out/serve.log"; do kill -0 $server; sleep 0.2; done
step "an episode of each task" build/demo/venv/bin/python -W ignore $here/play.py 127.0.0.1:8750 \
    --episodes 1 --seed 700000 --record "$out/metaworld_act/episodes"
step "what LeRobot says of them" $lerobot/bin/python $here/judge.py "$out/metaworld_act" "$out/metaworld_act/episodes"
