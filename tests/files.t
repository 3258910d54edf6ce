#!/bin/sh
# files.t - files of the program from the outside: what is read and written, and what is refused
# because it is no file; full disks; names that are no plain text; numbers that JSON does not have.
# usage: tests/files.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=pipelines/demo_metaworld.lua
I=tests/golden/demo/episodes/inputs.safetensors
S=tests/golden/schedules/oxy_fig3

skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
tectum() { timeout 60 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
# demo ARGS...: one frame of the demo
demo() {
    tectum run "$P" --threads 1 --input "observation/image=@$I#button.image[0]" \
        --input "observation/wrist_image=@$I#button.wrist_image[0]" \
        --input "observation/state=@$I#button.state[0]" --input "prompt=press the button" "$@"
}
# refused TEXT WORDS ARGS...: exit 3 within seconds (124 would be a hang), one line with the words
refused() {
    text=$1 words=$2
    shift 2
    timeout 20 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null
    [ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -q -- "$words" "$W/err"
    ok $? "$text is refused: $words"
}
alone() { [ "$(find "$W/box" -mindepth 1 | wc -l)" -eq "$1" ]; }

# --- what is read ------------------------------------------------------------------------------
mkdir "$W/in" "$W/in/folder.png" "$W/in/folder.safetensors"
for name in x.png x.jpg x.safetensors x.lua x.json x.jsonl x.costs tokenizer.model tokenizer.json; do
    mkfifo "$W/in/$name"
done
picture="run $P --input observation/image=@"
refused "a FIFO as a PNG" "is a FIFO" ${picture}"$W/in/x.png"
refused "a FIFO as a JPEG" "is a FIFO" ${picture}"$W/in/x.jpg"
refused "a folder as a picture" "is a directory" ${picture}"$W/in/folder.png"
refused "a FIFO as a tensor" "is a FIFO" ${picture}"$W/in/x.safetensors#image"
refused "a folder as a tensor" "holds neither model.safetensors" ${picture}"$W/in/folder.safetensors#image"
refused "a FIFO as noise" "is a FIFO" run "$P" --device cpu --noise "@$W/in/x.safetensors#n" \
    --input "observation/image=@$I#button.image[0]" --input "observation/state=[0,0,0,0]" \
    --input "observation/wrist_image=@$I#button.wrist_image[0]" --input prompt=x
refused "a FIFO as frames" "is a FIFO" run "$P" --inputs "$W/in/x.jsonl"
refused "a folder as frames" "is a directory" run "$P" --inputs "$W/in"
refused "a FIFO as a pipeline" "is a FIFO" check "$W/in/x.lua"
refused "a FIFO as a pipeline's form" "is a FIFO" run "$W/in/x.json"
refused "a FIFO as a policy" "is a FIFO" simulate $S/pipeline.lua --costs $S/costs.json --policy "$W/in/x.lua"
refused "a FIFO as costs" "is a FIFO" check "$P" --costs "$W/in/x.costs"
refused "a FIFO as a scenario" "is a FIFO" simulate $S/pipeline.lua --costs $S/costs.json \
    --scenario "$W/in/x.json"
refused "a FIFO as a tokenizer" "is a FIFO" tokenize "$W/in/tokenizer.model"
refused "a FIFO as a tokenizer's JSON" "is a FIFO" tokenize "$W/in/tokenizer.json"
refused "a FIFO as a checkpoint" "is a FIFO" inspect "$W/in/x.safetensors"
if mknod "$W/in/zero.png" c 1 5 2>/dev/null; then # a node of this test's own
    refused "a device as a picture" "is a character device" ${picture}"$W/in/zero.png"
else
    skip "a device as a picture" "nodes of devices cannot be made here"
fi
frame="{\"observation/image\": \"@$PWD/$I#button.image[0]\", \"observation/state\": [0,0,0,0], \
\"observation/wrist_image\": \"@$PWD/$I#button.wrist_image[0]\", \"prompt\": \"press\"}"
echo "$frame" >"$W/frame.jsonl"
timeout 60 "$T" run "$P" --threads 1 --inputs /dev/stdin >"$W/out" 2>"$W/err" <"$W/frame.jsonl"
[ $? -eq 0 ] && [ -s "$W/out" ]; ok $? "frames from standard input where that is a file"

# --- what is written ---------------------------------------------------------------------------
mkdir "$W/box"
mkfifo "$W/box/fifo"
demo --dump "$W/plain.safetensors"; ok $? "a dump"
refuse_out() { # refuse_out TEXT WORDS ARGS...
    text=$1 words=$2
    shift 2
    demo "$@"
    [ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -q -- "$words" "$W/err" && [ ! -s "$W/out" ]
    ok $? "$text is refused before the first frame"
}
refuse_out "-o to a FIFO that nobody reads" "a FIFO that nobody reads" -o "$W/box/fifo"
for option in --out --dump --timeline; do
    refuse_out "$option to a folder" "$option: $W/box: is a directory" $option "$W/box"
    refuse_out "$option into no folder" "No such file or directory" $option "$W/none/x"
done
for option in --out --dump --timeline; do
    cat "$W/box/fifo" >"$W/got" &
    reader=$!
    until_open=0 # the reader opens it within a moment
    while demo $option "$W/box/fifo"; [ $? -eq 3 ] && [ $until_open -lt 50 ]; do
        until_open=$((until_open + 1))
        sleep 0.1
    done
    wait $reader
    [ -p "$W/box/fifo" ] && [ -s "$W/got" ]; ok $? "$option to a FIFO gives its reader the bytes"
    [ $option != --dump ] || { cmp -s "$W/got" "$W/plain.safetensors" ||
        [ "$(wc -c <"$W/got")" -eq "$(wc -c <"$W/plain.safetensors")" ]; }
    ok $? "$option: all of them"
done
alone 1; ok $? "nothing else is left there"
echo kept >"$W/target"
ln -s ../target "$W/box/link"
demo -o "$W/box/link" && [ -L "$W/box/link" ] && grep -q '"frame":0' "$W/target"
ok $? "a link stays, its target is written"
chmod 604 "$W/target"
demo -o "$W/target" && [ "$(stat -c %a "$W/target")" = 604 ]; ok $? "permissions stay"
if mknod "$W/box/null" c 1 3 2>/dev/null; then
    demo -o "$W/box/null" --dump "$W/box/null" --timeline "$W/box/null" && [ -c "$W/box/null" ]
    ok $? "a device stays a device"
    rm "$W/box/null"
else
    skip "a device stays a device" "nodes of devices cannot be made here"
fi
echo before >"$W/out2"
timeout 60 "$T" run "$P" --threads 1 --input "observation/image=@$I#button.image[0]" \
    --input "observation/wrist_image=@$I#button.wrist_image[0]" --input prompt=press \
    --input "observation/state=@$I#button.state[0]" -o /dev/stdout 2>"$W/err" >>"$W/out2"
head -n 1 "$W/out2" | grep -q before && grep -q '"frame":0' "$W/out2"
ok $? "/dev/stdout is standard output, also where that is a file"

# --- a full disk: a limit on the size of files stands for it --------------------------------------
echo old >"$W/box/x"
full() { # full TEXT ARGS...
    text=$1
    shift
    (ulimit -f 1 && exec "$T" "$@") 2>&1 >/dev/null </dev/null | cat >"$W/err"
    [ "$(wc -l <"$W/err")" -eq 1 ] && grep -q 'x: cannot be written: File too large' "$W/err" &&
        [ "$(cat "$W/box/x")" = old ] && alone 3
    ok $? "a full disk: $text says why, the old file stays"
}
frame_args="run $P --threads 1 --input observation/image=@$I#button.image[0] --input prompt=press
    --input observation/wrist_image=@$I#button.wrist_image[0] --input observation/state=[0,0,0,0]"
full "a dump" $frame_args --dump "$W/box/x"
full "frames" $frame_args --out "$W/box/x"
full "a picture" $frame_args --timeline "$W/box/x"
full "a trace" simulate $S/pipeline.lua --costs $S/costs.json --scenario $S/scenario.json --trace "$W/box/x"

# --- names -----------------------------------------------------------------------------------
# plain FILE: no control character but line ends, none of 0x80 to 0x9f, no override of direction
plain() { ! LC_ALL=C grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]' "$1"; }
evil=$(printf 'x\033]0;t\007\302\233\342\200\256\377')
tectum check "$W/$evil.lua"; [ $? -eq 3 ] && plain "$W/err" && grep -qF 'x\x1b]0;t\x07\u009b\u202e\xff' "$W/err"
ok $? "a path in a message"
printf '{"name": "\033[31m\302\233"}' >"$W/in/$evil.json"
tectum check "$W/in/$evil.json"; plain "$W/out" && plain "$W/err" && grep -qF '\u202e\xff.json:1' "$W/out"
ok $? "a path and a line in a diagnosis"
cp "$P" "$W/in/$evil.ok.lua"
tectum check --root . "$W/in/$evil.ok.lua"; plain "$W/out" && plain "$W/err"; ok $? "a path that is told to be well"
tectum "$evil"; [ $? -eq 2 ] && plain "$W/err"; ok $? "a verb"
tectum run "$P" "--$evil"; [ $? -eq 2 ] && plain "$W/err"; ok $? "an option"
demo --set "x=$evil"; [ $? -ne 0 ] && plain "$W/err"; ok $? "a value"
if command -v python3 >/dev/null 2>&1; then
    python3 - "$W/in" <<'PYTHON'
import json, struct, sys
name = "a\x1b]0;t\x07\x9b\u202e\x7f\n"
head = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
open(sys.argv[1] + "/named.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + b"\0\0\0\0")
PYTHON
    cp "$W/in/named.safetensors" "$W/in/$evil.safetensors"
    tectum inspect --list "$W/in/$evil.safetensors"
    [ $? -eq 0 ] && plain "$W/out" && grep -qF 'a\x1b]0;t\x07\u009b\u202e\x7f\n' "$W/out"
    ok $? "a tensor's name in a report"
    tectum inspect --list --format json "$W/in/$evil.safetensors"
    python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
assert r["list"][0]["name"] == "a\x1b]0;t\x07\x9b\u202e\x7f\n", r
assert r["path"].endswith("\\xff.safetensors"), r' "$W/out" 2>>"$W/err"
    ok $? "JSON has the name itself, and a path that is no UTF-8 with escapes"
    tectum run "$P" --input "observation/image=@$W/in/named.safetensors#$evil"
    [ $? -eq 3 ] && plain "$W/err"; ok $? "a tensor's name in a message"

    # --- numbers that are not finite: a head whose products overflow -------------------------
    cp -r pipelines/checkpoints/metaworld "$W/huge"
    python3 - "$W/huge/model.safetensors" <<'PYTHON'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack("<Q", data[:8])[0]
tensors = json.loads(data[8:8 + size])
begin, end = tensors["action_out_proj.weight"]["data_offsets"]
data[8 + size + begin:8 + size + end] = b"\x7f\x7f" * ((end - begin) // 2)   # 3.4e38 in bf16
open(sys.argv[1], "wb").write(data)
PYTHON
    demo --weights "$W/huge" --format json
    [ $? -eq 1 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -q 'frame 0: row 0 of 16 of the actions is not finite' "$W/err"
    ok $? "actions that are not finite: said, exit 1"
    python3 -c '
import json, sys
def no(word):
    raise ValueError(word)
f = json.loads(open(sys.argv[1]).read(), parse_constant=no)
assert f["actions"] == {} and f["source"] == "none" and "not finite" in f["trouble"], f' "$W/out" 2>>"$W/err"
    ok $? "their line is JSON: no actions, no source, and why"
else
    for text in "a tensor's name" "its JSON" "its message" "actions that are not finite" "their line"; do
        skip "$text" "no python3"
    done
fi
echo "1..$n"
exit $failed
