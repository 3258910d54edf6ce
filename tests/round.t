#!/bin/sh
# round.t - what products may read of activations (`round` of a pipeline), from the outside: one bf16 term, two, or all.
# usage: tests/round.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P="--device cpu --policy isolated pipelines/demo_metaworld.lua"

actions_of plain $P && actions_of none $P --set model.round=none && cmp "$W/plain" "$W/none" >"$W/err" 2>&1
ok $? "none: nothing changes"
"$T" check pipelines/demo_metaworld.lua --set model.round=bf8 >"$W/out" 2>&1; [ $? -eq 1 ] && grep -q "must be one of none, bf16x2, mixed, bf16" "$W/out"
ok $? "another word is an error with its place"
actions_of ref $P --tier ref && actions_of two $P --tier ref --set model.round=bf16x2 && ! cmp -s "$W/ref" "$W/two"
ok $? "two terms: the reference reads them"
actions_of one $P --set model.round=bf16 && ! cmp -s "$W/plain" "$W/one"
ok $? "one term: actions differ"
actions_of f32 $P --tier ref --dtype f32 && python3 - "$W/f32" "$W/ref" "$W/two" "$W/one" <<'END'
import json, sys
def flat(v):
    v = list(v.values()) if isinstance(v, dict) else v
    return [y for x in v for y in flat(x)] if isinstance(v, list) else [v]
f32, ref, two, one = [[x for line in open(name) for x in flat(json.loads(line))] for name in sys.argv[1:]]
spread = (sum(a * a for a in f32) / len(f32)) ** 0.5
rms = [(sum((a - b) ** 2 for a, b in zip(f32, x)) / len(f32)) ** 0.5 / spread for x in (ref, two, one)]
sys.exit(not (0 < rms[1] < 2 * rms[0] and rms[1] < rms[2] < 0.1))
END
ok $? "and are near those of float32, two terms nearer than one"
actions_of mixed $P --set model.round=mixed && ! cmp -s "$W/mixed" "$W/plain" && ! cmp -s "$W/mixed" "$W/one"
ok $? "one or two: actions are others than with either"
for r in bf16x2 mixed bf16; do
    actions_of a $P --set model.round=$r --threads 1 && actions_of b $P --set model.round=$r --threads 2 && cmp "$W/a" "$W/b" >"$W/err" 2>&1
    ok $? "$r: the number of threads changes no byte"
done
actions_of a $P --dtype f32 && actions_of b $P --dtype f32 --set model.round=bf16 && cmp "$W/a" "$W/b" >"$W/err" 2>&1
ok $? "float32 weights: nothing is rounded"
"$T" check pipelines/demo_metaworld.lua --set model.dtype=f32 --set model.round=mixed >"$W/out" 2>&1 && grep -q "W110.*'main' has .round., which is for bf16 weights" "$W/out"
ok $? "a file that rounds them is told so"
"$T" run pipelines/demo_metaworld.lua --random-inputs 1 -n 1 --dtype f32 --set model.round=mixed >"$W/out" 2>"$W/err"
grep -q "W110.*'main' has .round., which is for bf16 weights" "$W/err" && grep -q "^ --> --set:1:" "$W/err"
ok $? "and by run, where --dtype says f32: at the option that asks for it"
"$T" run pipelines/demo_metaworld.lua --random-inputs 1 -n 1 --dtype bf16 --set model.dtype=f32 --set model.round=mixed \
    >"$W/out" 2>"$W/err" && ! grep -q "W110" "$W/err"
ok $? "and not where --dtype says bf16 in place of the file's f32"
"$T" check pipelines/demo_metaworld.lua --set model.round=mixed >"$W/out" 2>&1 && ! grep -q "W110" "$W/out"
ok $? "and one that rounds what it may is not"
for pipeline in pi05_aloha smolvla_so100 groot_gr1 groot_n17_libero openvla_bridge; do
    R="--device cpu pipelines/$pipeline.lua --random-weights 1 --size tiny"
    [ $pipeline != openvla_bridge ] || R="$R --policy actionflow --param depth=1" # its own policy looks at times
    actions_of a $R --set model.round=none && actions_of b $R --set model.round=bf16 && ! cmp -s "$W/a" "$W/b" && actions_of c $R --set model.round=bf16 --threads 1 &&
        cmp "$W/b" "$W/c" >"$W/err" 2>&1
    ok $? "$pipeline, with random weights"
    [ $pipeline != openvla_bridge ] || continue # actions are tokens
    actions_of c $R --set model.round=mixed && ! cmp -s "$W/a" "$W/c" && ! cmp -s "$W/b" "$W/c"
    ok $? "$pipeline: mixed is neither"
done
V="verify --device cpu tests/golden/smolvla/selfattn"
"$T" $V --dtype bf16 >"$W/a" 2>"$W/err" && "$T" $V --dtype bf16 --round bf16 >"$W/b" 2>"$W/err" && ! cmp -s "$W/a" "$W/b"
ok $? "verify --round bf16: other errors, within bounds"
"$T" $V --tier ref --dtype bf16 >"$W/a" 2>"$W/err" && "$T" $V --tier ref --dtype bf16 --round bf16x2 >"$W/b" 2>"$W/err" && ! cmp -s "$W/a" "$W/b"
ok $? "verify --round bf16x2: other errors, within bounds"
"$T" $V --dtype bf16 >"$W/a" 2>"$W/err" && "$T" $V --dtype bf16 --round mixed >"$W/b" 2>"$W/err" && ! cmp -s "$W/a" "$W/b"
ok $? "verify --round mixed: other errors, within bounds"
"$T" $V --round bf16 >"$W/out" 2>"$W/err"; [ $? -ne 0 ] && grep -q "without --dtype bf16 there is nothing to round" "$W/err" && ! [ -s "$W/out" ]
ok $? "of an f32 plan it is refused"
"$T" $V --root "$W" >"$W/out" 2>"$W/err"; [ $? -ne 0 ] && grep -q "holds no pipelines/" "$W/err" && ! [ -s "$W/out" ]
ok $? "verify says that a root holds nothing"
echo "1..$n"
exit $failed
