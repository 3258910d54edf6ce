#!/bin/sh
# frozen.t - what pipelines compile to and do stays as it was: command lists, event traces, actions.
# usage: tests/frozen.t [--write] [PROGRAM]; --write keeps what the program does now.
#
# tests/frozen/pipelines.txt names them. lists.txt has, for each, the checksum of
# `tectum graph --commands`; traces.txt that of the events of 20 simulated frames whose launches take
# 1 ms; actions.txt the first actions of four frames of random inputs on the reference kernels,
# compared within 1e-3, as the C library's functions may differ between processors. To see what
# differs, run the printed command with the program of either commit.
write=
[ "${1:-}" = --write ] && write=1 && shift
. "$(dirname "$0")/opening.sh"
model="--random-weights 1 --size tiny"

# same FILE PIPELINE VALUE TEXT: the file's line of the pipeline has this value
same() {
    if [ -n "$write" ]; then
        echo "$2 $3" >>"$W/$1"
        return
    fi
    [ "$(sed -n "s|^$2 ||p" "tests/frozen/$1")" = "$3" ]
    ok $? "$4"
}

# tectum VERB OPTIONS... PIPELINE: run where a memory leaves its file, each time a new one
tectum() {
    rm -f "$W"/*.memory "$W"/build/*
    (cd "$W" && "$T" "$@" --root "$root" 2>"$W/err" </dev/null)
}

sum() { sha256sum "$1" | cut -c 1-16; }

for p in pipelines/*.lua pipelines/graphs/*.lua tests/pipelines/*.lua tests/pipelines/graphs/*.lua; do
    grep -q "^$p " tests/frozen/pipelines.txt 2>/dev/null || continue
    list="graph --commands $model --device cpu --threads 2 --tier ref $root/$p"
    tectum $list >"$W/out"
    same lists.txt "$p" "$(wc -l <"$W/out") $(sum "$W/out")" "tectum $list"
    trace="simulate $model --launch-ms 1 -n 20 $root/$p"
    : >"$W/out" # a program that fails leaves no trace, and not the list either
    tectum $trace --trace "$W/out" >/dev/null
    same traces.txt "$p" "$(wc -l <"$W/out") $(sum "$W/out")" "tectum $trace --trace FILE"
    run="run $model --random-inputs 1 -n 4 --threads 1 --tier ref --format json $root/$p"
    tectum $run >"$W/frames"
    python3 -S - "$W/frames" "$p" "${write:+$W/actions.txt}" >>"$W/err" 2>&1 <<'PYTHON'
import json, sys
frames = [json.loads(line) for line in open(sys.argv[1])]
now = [[x for node in sorted(f.get("actions") or {}) for x in (f["actions"][node] or [[]])[0]] for f in frames]
if any("in_flight" in f for f in frames):
    now = []  # how many frames fill a ring depends on the time that they take
if sys.argv[3]:
    open(sys.argv[3], "a").write(sys.argv[2] + " " + json.dumps([[round(x, 6) for x in r] for r in now]) + "\n")
else:
    was = [line.split(" ", 1) for line in open("tests/frozen/actions.txt")]
    was = json.loads(dict(was)[sys.argv[2]])
    assert [len(r) for r in was] == [len(r) for r in now], "actions of other frames"
    assert all(abs(a - b) <= 1e-3 for r, s in zip(was, now) for a, b in zip(r, s)), "other actions"
PYTHON
    status=$?
    [ -n "$write" ] || ok $status "tectum $run"
done
if [ -n "$write" ]; then
    cp "$W/lists.txt" "$W/traces.txt" "$W/actions.txt" tests/frozen/
    exit 0
fi
echo "1..$n"
exit $failed
