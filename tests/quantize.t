#!/bin/sh
# quantize.t - models whose layers have 8-bit or 4-bit weights (`quantize` of a pipeline), or whose head has 8-bit ones
# (`quantize_head`), from the outside: their bytes, the file of packed weights, threads, tiers, other models, and how far
# actions and texts move.
# usage: tests/quantize.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=pipelines/demo_metaworld.lua
A="--device cpu --policy isolated $P"
# weights OPTION...: their KiB, as `check` counts them.
weights() {
    "$T" check "$@" 2>"$W/err" | sed -n 's/.*: weights \([0-9.]*\) \([KMG]\)iB.*/\1 \2/p' |
        awk '{ printf "%d\n", $1 * ($2 == "K" ? 1 : $2 == "M" ? 1024 : 1048576) }'
}
# far FILE SHARE: actions of FILE are others than float32's, and by less than that share of what those differ from 0.
far() {
    python3 - "$W/f32" "$W/$1" "$2" <<'END'
import json, sys
def flat(v):
    v = list(v.values()) if isinstance(v, dict) else v
    return [y for x in v for y in flat(x)] if isinstance(v, list) else [v]
f32, mine = [[x for line in open(name) for x in flat(json.loads(line))] for name in sys.argv[1:3]]
rms = (sum((a - b) ** 2 for a, b in zip(f32, mine)) / len(f32)) ** 0.5
spread = (sum(a * a for a in f32) / len(f32)) ** 0.5
sys.exit(not (len(f32) == len(mine) > 0 and 0 < rms < float(sys.argv[3]) * spread))
END
}

# peak SIZE OPTION...: KiB of the device's plan of a model of that size, and of the process at its peak, over two frames.
peak() {
    set -- --device cpu --threads 2 --random-weights 1 --size "$@"
    python3 - "$T" "$@" <<'END'
import os, re, subprocess, sys
plan = subprocess.run([sys.argv[1], "check"] + sys.argv[2:], stdout=subprocess.PIPE, check=True).stdout.decode()
size, unit = re.search(r"device plan ([0-9.]+) ([KMG])iB", plan).groups()
run = subprocess.Popen([sys.argv[1], "run", "--random-inputs", "4", "-n", "2"] + sys.argv[2:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(run.pid, 0)
print(int(float(size) * {"K": 1, "M": 1024, "G": 1048576}[unit]), used.ru_maxrss)
sys.exit(status != 0)
END
}

"$T" check $P --set model.quantize=int3 >"$W/out" 2>&1; [ $? -eq 1 ] && grep -q "must be one of none, int8, int4" "$W/out"
ok $? "another word is an error with its place"
actions_of plain $A && actions_of none $A --set model.quantize=none && cmp "$W/plain" "$W/none" >"$W/err" 2>&1
ok $? "none: nothing changes"
actions_of f32 $A --dtype f32; ok $? "actions of a float32 plan"
cp -r pipelines/checkpoints/metaworld "$W/checkpoint" && chmod -R u+w "$W/checkpoint" && "$T" pack --weights "$W/checkpoint" --device cpu $P 2>"$W/err"
ok $? "pack, as the file is"
plain=$(weights $P) files=1

for q in int8 int4; do
    Q="--set model.quantize=$q" files=$((files + 1))
    [ $q = int8 ] && least=50 most=70 share=0.1 || { least=35; most=45; share=0.3; } # the embedding stays
    few=$(weights $P $Q) && [ "$few" -lt $((plain * most / 100)) ] && [ "$few" -gt $((plain * least / 100)) ]
    ok $? "$q: check counts fewer bytes"
    actions_of $q $A $Q && ! cmp -s "$W/plain" "$W/$q" && far $q $share
    ok $? "$q: actions are near those of float32"
    actions_of one $A $Q --threads 1 && cmp "$W/$q" "$W/one" >"$W/err" 2>&1 && actions_of two $A $Q --threads 2 && cmp "$W/$q" "$W/two"
    ok $? "$q: the number of threads changes no byte"
    "$T" pack --weights "$W/checkpoint" --device cpu $P $Q 2>"$W/err" &&
        [ "$(find "$W/checkpoint" -name 'tectum-*' | wc -l)" = $files ]
    ok $? "$q: a file of packed weights lies beside the others"
    actions_of packed --weights "$W/checkpoint" $A $Q && grep -q "checked in" "$W/err" && cmp "$W/$q" "$W/packed"
    ok $? "$q: frames from it are the same"
    for pipeline in pi05_aloha smolvla_so100 groot_gr1 act_aloha openvla_bridge pi0_aloha; do
        R="--device cpu pipelines/$pipeline.lua --random-weights 1 --size tiny"
        [ $pipeline != openvla_bridge ] || R="$R --policy actionflow --param depth=1" # its own policy looks at times
        actions_of a $R $Q && actions_of b $R $Q --threads 1 && cmp "$W/a" "$W/b" && actions_of c $R $Q --dtype f32 &&
            [ "$(weights $R $Q)" -lt "$(weights $R)" ]
        ok $? "$q: $pipeline, with random weights"
    done
    # What a process has besides its plan is the same for a tiny model: nothing of 16 bits stays beside the rounded weights.
    R="$Q pipelines/openvla_bridge.lua --policy actionflow --param depth=1"
    peak tiny $R >"$W/base" 2>"$W/err" && peak small $R >"$W/out" 2>"$W/err" &&
        cat "$W/base" "$W/out" | { read -r plan most && read -r larger peak && [ $((peak - (most - plan))) -le $((larger * 110 / 100)) ]; }
    ok $? "$q: the peak of memory is at most 1.10 x the plan, and what a tiny model takes besides"
    R="pipelines/planner_and_arm.lua --random-weights 1 --size tiny"
    a=$(weights $R) && b=$(weights $R --set models.arm.quantize=$q) && c=$(weights $R --set models.planner.quantize=$q) &&
        [ "$b" -lt "$a" ] && [ "$c" -lt "$a" ] && [ "$b" != "$c" ]
    ok $? "$q: of two models either"
done
cmp -s "$W/int8" "$W/int4"; [ $? -eq 1 ]; ok $? "4 bits are not 8"
# Activations in 8 bits beside weights in 8 bits.
Q="--set model.quantize=int8 --set model.round=int8"
actions_of eight $A $Q && ! cmp -s "$W/int8" "$W/eight" && far eight 0.02
ok $? "round = int8: actions are near those of float32"
actions_of a $A --set model.quantize=int8 --dtype f32 && actions_of b $A $Q --dtype f32 && ! cmp -s "$W/a" "$W/b"
ok $? "round = int8: of an f32 plan, too"
actions_of one $A $Q --threads 1 && cmp "$W/eight" "$W/one" >"$W/err" 2>&1 && actions_of two $A $Q --threads 2 && cmp "$W/eight" "$W/two"
ok $? "round = int8: the number of threads changes no byte"
actions_of packed --weights "$W/checkpoint" $A $Q && grep -q "checked in" "$W/err" && cmp "$W/eight" "$W/packed"
ok $? "round = int8: the file of packed weights is that of int8"
for q in none int4; do
    "$T" check $P --set model.quantize=$q --set model.round=int8 >"$W/out" 2>&1
    [ $? -eq 1 ] && grep -q "error.E011.: 'int8' is of products with 8-bit weights, which model 'main' does not have" "$W/out"
    ok $? "round = int8: beside quantize = $q it is an error with its place"
done
for pipeline in pi05_aloha smolvla_so100 groot_gr1 act_aloha openvla_bridge pi0_aloha; do
    R="--device cpu pipelines/$pipeline.lua --random-weights 1 --size tiny"
    [ $pipeline != openvla_bridge ] || R="$R --policy actionflow --param depth=1" # its own policy looks at times
    actions_of a $R --set model.quantize=int8 --set model.round=none && actions_of b $R $Q && ! cmp -s "$W/a" "$W/b" &&
        actions_of c $R $Q --threads 1 && cmp "$W/b" "$W/c" && actions_of d $R $Q --dtype f32
    ok $? "round = int8: $pipeline, with random weights"
done
V="verify --device cpu tests/golden/smolvla/selfattn --dtype bf16"
"$T" $V --round int8 >"$W/out" 2>"$W/err"; [ $? -ne 0 ] && grep -q "without --quantize int8 there is nothing to round" "$W/err" && ! [ -s "$W/out" ]
ok $? "verify --round int8 without 8-bit weights is refused"
"$T" $V --quantize int8 >"$W/a" 2>"$W/err"; "$T" $V --quantize int8 --round int8 >"$W/b" 2>"$W/err"; [ -s "$W/a" ] && [ -s "$W/b" ] && ! cmp -s "$W/a" "$W/b"
ok $? "verify --quantize int8 --round int8: other errors"
actions_of before --weights "$W/checkpoint" $A && grep -q "checked in" "$W/err" && cmp "$W/plain" "$W/before"
ok $? "the file without still has its frames"
for numpy in /usr/bin/python3 python3; do "$numpy" -c "import numpy" 2>/dev/null && break; numpy=; done
# codes CHECKPOINT WHAT KEPT [PIPELINE]: every code and scale of a checkpoint is what numpy makes of it.
codes() {
    [ -n "$numpy" ] || { n=$((n + 1)); echo "ok $n - 4-bit weights of $2 # SKIP no python3 with numpy"; return; }
    rm -rf "$W/codes"
    "$T" pack --device cpu "${4:-$1}" --set model.quantize=int4 --weights-cache "$W/codes" >"$W/out" 2>"$W/err" &&
        "$numpy" tests/int4_codes.py "$1"/*model.safetensors "$W"/codes/*.weights "$3" >"$W/out" 2>"$W/err"
    ok $? "4-bit weights of $2 are numpy's, bit for bit: $(cat "$W/out")"
}
arm='embed|lm_head|action_in|action_out|time_mlp|layernorm|model.norm.dense|multi_modal_projector'
codes pipelines/checkpoints/metaworld "bf16" "$arm" $P
codes tests/golden/pi/pi05_odd_lerobot/checkpoint/pretrained_model "float32, some of which groups do not divide" "$arm"
codes tests/golden/groot/n15_tiny_lerobot/checkpoint "a model of calls" \
    "embed|lm_head|action_..coder|state_encoder|future|proj_out|timestep|norm|eagle_linear|mlp1|vision_model.head"

rm -f "$W"/checkpoint/tectum-* && python3 - "$W/checkpoint/model.safetensors" <<'END'
import json, struct, sys
with open(sys.argv[1], "r+b") as file:
    size = struct.unpack("<Q", file.read(8))[0]
    at = next(t for name, t in json.loads(file.read(size)).items() if name.endswith("layers.0.mlp.up_proj.weight"))
    file.seek(8 + size + at["data_offsets"][0] + 2 * 5)
    file.write(struct.pack("<H", 0x4974)) # bf16 of 999424
END
"$T" run --weights "$W/checkpoint" $A --random-inputs 4 --set model.quantize=int8 >"$W/out" 2>"$W/err" &&
    ! "$T" run --weights "$W/checkpoint" $A --random-inputs 4 --set model.quantize=int4 >"$W/out" 2>"$W/err" &&
    grep -q "checkpoint.*tensor '.*layers.0.mlp.up_proj.weight' element 5 is 999424; .* within +-491280" "$W/err"
ok $? "a weight that 4 bits have no scale for is an error with its place"

# texts_of FILE OPTION...: $W/FILE gets the tokens of all texts of five frames; none at all is a failure.
texts_of() {
    to=$1
    shift
    "$T" run "$@" --random-inputs 4 -n 5 --drain --format json >"$W/out" 2>"$W/err" &&
        python3 -c "import json, sys
tokens = [part['tokens'] for line in sys.stdin for node in json.loads(line).get('text', {}).values() for part in node]
for t in tokens: print(t)
sys.exit(not any(tokens))" <"$W/out" >"$W/$to"
}
H="--set model.quantize_head=int8"
"$T" check $P --set model.quantize_head=int4 >"$W/out" 2>&1; [ $? -eq 1 ] && grep -q "must be one of none, int8" "$W/out"
ok $? "the head: another word is an error with its place"
actions_of head $A $H && cmp "$W/plain" "$W/head" >"$W/err" 2>&1
ok $? "the head: actions that do not go through it are the same"
# Of a tied embedding the head is a second matrix: a byte for each weight and a scale for each token. Another is half.
tied="pipelines/qwen_chat.lua --random-weights 1 --size full" own="pipelines/openvla_bridge.lua --random-weights 1 --size full"
a=$(weights $tied) && b=$(weights $tied $H) && [ $((b - a)) -gt 125000 ] && [ $((b - a)) -lt 140000 ]
ok $? "the head: beside a tied embedding it is counted"
a=$(weights $own --set model.quantize=int8) && b=$(weights $own --set model.quantize=int8 $H) && [ "$b" -lt "$a" ]
ok $? "the head: of a model with a head of its own there are fewer bytes"
for pipeline in qwen_chat smollm2_chat openvla_bridge; do # the second one rounds logits to bf16, the third acts by tokens
    R="--device cpu pipelines/$pipeline.lua --random-weights 1 --size tiny"
    [ $pipeline = openvla_bridge ] && kind=actions_of R="$R --policy actionflow --param depth=1" || kind=texts_of
    $kind a $R $H --threads 1 && $kind b $R $H --threads 2 && cmp "$W/a" "$W/b" >"$W/err" 2>&1 &&
        $kind c $R $H --set model.quantize=int4 && $kind d $R $H --dtype f32
    ok $? "the head: $pipeline, with random weights, on one thread and two"
done
"$T" pack --weights "$W/checkpoint" --device cpu $P $H 2>"$W/err" && texts_of a $A $H && texts_of b --weights "$W/checkpoint" $A $H &&
    grep -q "checked in" "$W/err" && cmp "$W/a" "$W/b" && texts_of f32 $A --dtype f32 && cmp "$W/a" "$W/f32"
ok $? "the head: a file of packed weights has the same texts, which are float32's"
V="verify --device cpu --dtype bf16 tests/golden/pi/pi05_tiny_lang"
"$T" $V >"$W/a" 2>"$W/err" && "$T" $V --quantize-head int8 >"$W/b" 2>"$W/err" && ! cmp -s "$W/a" "$W/b" &&
    "$T" $V --quantize-head int8 --threads 1 >"$W/c" 2>"$W/err" && cmp "$W/b" "$W/c"
ok $? "verify --quantize-head int8: other logits, within the bounds of bf16, with the tokens"
"$T" $V --quantize-head int8 --certify "$W/none" >"$W/out" 2>"$W/err"; [ $? -ne 0 ] && grep -q "a certificate is of plans that do not round" "$W/err"
ok $? "a certificate is not of such a head"
R="$H --policy isolated pipelines/qwen_chat.lua"
peak tiny $R >"$W/base" 2>"$W/err" && peak small $R >"$W/out" 2>"$W/err" &&
    cat "$W/base" "$W/out" | { read -r plan most && read -r larger peak && [ $((peak - (most - plan))) -le $((larger * 110 / 100)) ]; }
ok $? "the head: the peak of memory is at most 1.10 x the plan, and what a tiny model takes besides"

R="pipelines/qwen_chat.lua --random-weights 1 --size full"
a=$(weights $R --set model.quantize=int8) && b=$(weights $R --set model.quantize=int4) && [ "$b" -lt "$a" ]
ok $? "bytes of a full size without its weights"
echo "1..$n"
exit $failed
