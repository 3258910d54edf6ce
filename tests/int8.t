#!/bin/sh
# int8.t - models whose layers have 8-bit weights (`quantize` of a pipeline), from the outside: their bytes, the
# file of packed weights, threads, other models, and how far actions move.
# usage: tests/int8.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=pipelines/demo_metaworld.lua Q="--set model.quantize=int8"
A="--device cpu --policy isolated $P"
# weights OPTION...: their KiB, as `check` counts them.
weights() {
    "$T" check "$@" 2>"$W/err" | sed -n 's/.*: weights \([0-9.]*\) \([KMG]\)iB.*/\1 \2/p' |
        awk '{ printf "%d\n", $1 * ($2 == "K" ? 1 : $2 == "M" ? 1024 : 1048576) }'
}

plain=$(weights $P) && int8=$(weights $P $Q) && [ "$int8" -lt $((plain * 7 / 10)) ] && [ "$int8" -gt $((plain / 2)) ]
ok $? "check counts fewer bytes"
"$T" check pipelines/demo_metaworld.lua --set model.quantize=int3 >"$W/out" 2>&1; [ $? -eq 1 ] && grep -q "must be one of none, int8" "$W/out"
ok $? "another word is an error with its place"
actions_of plain $A && actions_of int8 $A $Q && ! cmp -s "$W/plain" "$W/int8"
ok $? "actions differ from those of bf16 weights"
actions_of none $A --set model.quantize=none && cmp "$W/plain" "$W/none" >"$W/err" 2>&1
ok $? "none: nothing changes"
actions_of f32 $A --dtype f32 && python3 - "$W/f32" "$W/int8" "$W/plain" <<'END'
import json, sys
def flat(v):
    v = list(v.values()) if isinstance(v, dict) else v
    return [y for x in v for y in flat(x)] if isinstance(v, list) else [v]
f32, int8, bf16 = [[x for line in open(name) for x in flat(json.loads(line))] for name in sys.argv[1:]]
rms = [(sum((a - b) ** 2 for a, b in zip(f32, x)) / len(f32)) ** 0.5 for x in (int8, bf16)]
spread = (sum(a * a for a in f32) / len(f32)) ** 0.5
sys.exit(not (len(f32) == len(int8) > 0 and 0 < rms[0] < 0.1 * spread))
END
ok $? "and are near those of float32"
actions_of one $A $Q --threads 1 && cmp "$W/int8" "$W/one" >"$W/err" 2>&1 && actions_of two $A $Q --threads 2 && cmp "$W/int8" "$W/two"
ok $? "the number of threads changes no byte"

cp -r pipelines/checkpoints/metaworld "$W/checkpoint" && chmod -R u+w "$W/checkpoint"
"$T" pack --weights "$W/checkpoint" --device cpu $P 2>"$W/err" && "$T" pack --weights "$W/checkpoint" --device cpu $P $Q 2>"$W/err" &&
    [ "$(find "$W/checkpoint" -name 'tectum-*' | wc -l)" = 2 ]
ok $? "pack: files with and without lie side by side"
actions_of packed --weights "$W/checkpoint" $A $Q && grep -q "checked in" "$W/err" && cmp "$W/int8" "$W/packed"
ok $? "frames from the file are the same"
actions_of before --weights "$W/checkpoint" $A && grep -q "checked in" "$W/err" && cmp "$W/plain" "$W/before"
ok $? "and those without still have theirs"

for pipeline in pi05_aloha smolvla_so100 groot_gr1 act_aloha openvla_bridge pi0_aloha; do
    R="--device cpu pipelines/$pipeline.lua --random-weights 1 --size tiny"
    [ $pipeline != openvla_bridge ] || R="$R --policy actionflow --param depth=1" # its own policy looks at times
    actions_of a $R $Q && actions_of b $R $Q --threads 1 && cmp "$W/a" "$W/b" && actions_of c $R $Q --dtype f32 &&
        [ "$(weights $R $Q)" -lt "$(weights $R)" ]
    ok $? "$pipeline, with random weights"
done
R="pipelines/planner_and_arm.lua --random-weights 1 --size tiny"
a=$(weights $R) && b=$(weights $R --set models.arm.quantize=int8) && c=$(weights $R --set models.planner.quantize=int8) &&
    [ "$b" -lt "$a" ] && [ "$c" -lt "$a" ] && [ "$b" != "$c" ]
ok $? "of two models either"
echo "1..$n"
exit $failed
