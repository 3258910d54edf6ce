#!/bin/sh
# make.sh - the table's arm from the bundled robot, with the time each step took.
# usage: pipelines/checkpoints/table_arm/train/make.sh OUT [PERCENT of the minutes that training took; 100]
# A little more than an hour and a half on one core. It installs the simulator and PyTorch (tools/demo/setup.sh --train).
set -eu
cd "$(dirname "$0")/../../../.."
here=pipelines/checkpoints/table_arm/train train=pipelines/checkpoints/metaworld/train
case ${1:--} in -*) echo "usage: pipelines/checkpoints/table_arm/train/make.sh OUT [PERCENT]" >&2; exit 2 ;; esac
out=$1 percent=${2:-100}
sh tools/demo/setup.sh --train
python="build/demo/venv/bin/python -W ignore"
mkdir -p "$out"

. tools/demo/step.sh
train() { # train NAME MINUTES DEMOS OPTION...
    name=$1 minutes=$(awk "BEGIN { print $2 * $percent / 100 }") demos=$3
    shift 3
    step "training of $name" $python $train/train.py "$demos" "$out/$name" --minutes "$minutes" --batch 48 "$@"
}

step "recording 70 of each skill" $python $here/record.py "$out/demos" --demos 70
step "recording 100 more" $python $here/record.py "$out/more" --demos 100 --seed 20000
step "recording 60 more of the hardest" $python $here/record.py "$out/closing" --demos 60 --seed 30000 --skills "close the faucet"
all=$out/demos,$out/more
train first 9 "$out/demos" --init pipelines/checkpoints/metaworld --anew --lr 1.2e-3 --average 0.99 --repeats 2
train second 25 "$out/demos" --init "$out/first" --lr 1.2e-3 --average 0.99 --repeats 2
train third 26 "$all" --init "$out/second" --lr 1.2e-3 --average 0.995 --repeats 2
train fourth 24 "$all" --init "$out/third" --lr 1.2e-3 --average 0.995 --repeats 1 --words 0.3
train fifth 8 "$all,$out/closing,$out/closing" --init "$out/fourth" --lr 8e-4 --average 0.99 --repeats 1 --words 0.3
step "export" $python $train/export.py "$out/fifth" "$out/table_arm"
