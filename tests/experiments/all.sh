#!/bin/sh
# all.sh - the experiments whose terms are equal, one after the other on a machine that does nothing else.
# usage: tests/experiments/all.sh BUILD OUT [THREADS]     e.g. build/release /tmp/experiments
# About half an hour on two cores. Tables are OUT/*/*.md; OUT/all.md is all of them; what failed is named at the end.
set -u
build=$1 out=$2 threads=${3:-$(nproc)}
mkdir -p "$out"
failed=
measure() { # measure NAME COMMAND...
    name=$1
    shift
    echo "# $name: $*" >&2
    "$@" >"$out/$name.log" 2>&1 || failed="$failed $name"
    cat "$out/$name"/*.md >>"$out/all.md" 2>/dev/null
}
: >"$out/all.md"
oxygen="$build/experiments oxygen --random-weights 1 --size small --threads $threads"
keep="$build/experiments keep --random-weights 1 --threads 1"
measure oxygen_headline $oxygen --set experiment=headline --frames 30 -o "$out/oxygen_headline"
measure oxygen_table $oxygen --set experiment=table --frames 30 -o "$out/oxygen_table"
measure oxygen_loads $oxygen --set experiment=loads -o "$out/oxygen_loads"
measure keep_24_layers $keep --size small --set experiment=methods --set model.layers=24 --frames 24 -o "$out/keep_24_layers"
measure graphs python3 tests/experiments/graphs.py "$build/tectum" --size small --frames 200 --threads "$threads" -o "$out/graphs"
# 28 layers of a real size: a quarter of an hour by itself.
measure keep_1b5 $keep --size full --set model.arch=qwen2_1b5 --set experiment=methods --frames 3 -o "$out/keep_1b5"
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
