#!/bin/sh
# memory_check.t - what `check` says of a memory before a run finds out: tiers without room, places of its store, segments
# without room in a prompt, each at the field or option that says so; and what `inspect` lists of a store.
# usage: tests/memory_check.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
P=pipelines/demo_memory.lua

# judge STATUS OPTION...: check the pipeline with settings, into $W/out.
judge() {
    status=$1
    shift
    "$T" check --device cpu --set "resources.mem.store=$W/m" "$@" "$P" >"$W/out" 2>&1
    test $? -eq "$status"
}
says() { grep -q -e "$1" "$W/out"; }
# finds CODE TEXT LINE:COLUMN: one finding, at that option.
finds() { says "\[$1\]: $2" && says "^ --> --set:$3\$" && test "$(grep -c '\[[EW][0-9]*\]' "$W/out")" -eq 1; }

judge 0 && ! says W110
ok $? "tiers with room: nothing is said"
judge 0 --set resources.mem.tiers.disk=8KiB &&
    finds W110 "memory 'mem': tiers.disk keeps nothing: a segment of tokens_each takes 29.6 KiB; it has 8.00 KiB" 2:26
ok $? "a file without room for the keys of one segment, at the option"
judge 0 --set resources.mem.tiers.disk=29.7KiB && ! says W110
ok $? "and one that has it"
judge 1 --set resources.mem.tiers.disk=1KiB && finds E011 "memory 'mem': tiers.disk holds no text: " 2:26
ok $? "a file without room for a text is an error"
judge 0 --set resources.mem.tiers.disk=0 && ! says 'W110\|E011'
ok $? "0 is no bound"
judge 0 --set resources.mem.tiers.host=1KiB &&
    finds W110 "memory 'mem': tiers.host keeps nothing: a segment of tokens_each takes 24.4 KiB; it has 1.00 KiB" 2:26
ok $? "RAM without room for one"
judge 0 --set resources.mem.tiers.host=64KiB --set frame.sessions=4 && says "tiers.host keeps nothing: .*each part has 16.0 KiB"
ok $? "or for one of each robot"
judge 0 --set resources.mem.tiers.gpu=1GiB && finds W110 "memory 'mem': tiers.gpu keeps nothing: this device reads" 2:25
ok $? "a tier on a GPU, on a CPU, at the option"
sed 's/host = "64MiB"/host = "1KiB"/' $P >"$W/p.lua"
"$T" check --device cpu "$W/p.lua" >"$W/out" 2>&1 && says "tiers.host keeps nothing" && says "^  --> $W/p.lua:24:36"
ok $? "in a file at its field"

# keep OPTION...: a run of a frame that keeps three texts, into $W/out
keep() {
    "$T" run --device cpu --set "resources.mem.store=$W/full" "$@" "$P" --frames 1 --input goal=find:cup \
        --input 'memory={"put": {"a": "the cup is red", "b": "the fork", "c": "the spoon"}}' >"$W/out" 2>&1
}
keep --set resources.mem.tiers.disk=1KiB
[ $? -eq 4 ] && [ "$(wc -l <"$W/out")" -eq 1 ] && [ ! -e "$W/full" ] &&
    says "^tectum run: --set:2: memory 'mem': tiers.disk holds no text: a file with one takes 5.12 KiB at least; it has 1.00 KiB$"
ok $? "a run with such a file does not begin, in one line"
keep --set resources.mem.tiers.disk=6KiB
[ $? -eq 4 ] && says "it would have [67][0-9]* bytes with [0-9]* more; it may have 6144: remove texts, or raise the memory's tiers.disk$"
ok $? "run says what a full file would have, what it may have, and by which field"
rm -f "$W/full"
keep --set resources.mem.tiers.host=1KiB && says "memory 'mem': tiers.host keeps nothing: a segment of tokens_each takes 24.4 KiB"
ok $? "run says that RAM keeps nothing"
keep && ! says "keeps nothing"
ok $? "and nothing where it keeps"
keep --dtype f32
[ $? -eq 3 ] && [ "$(wc -l <"$W/out")" -eq 1 ] && ! says "quantize\|round\|[0-9a-f]\{16\}" &&
    says "^tectum run: --set:1: memory 'mem': $W/full: holds KV of another dtype, keys of 128 bytes a token and layer, here they have 256 "
ok $? "of keys of another dtype the bytes are told, and nothing that is no reason"

mkdir "$W/folder" && : >"$W/file"
"$T" check --set "resources.mem.store=$W/folder" $P >"$W/out" 2>&1
[ $? -eq 1 ] && finds E011 "memory 'mem': $W/folder: is a folder, a store is a file" 1:21
ok $? "a store that is a folder"
"$T" run --set "resources.mem.store=$W/folder" $P -n 1 --random-inputs 1 >"$W/out" 2>&1
[ $? -eq 3 ] && says "^tectum run: --set:1: memory 'mem': $W/folder: is a folder, a store is a file$"
ok $? "run says the same"
echo "notes about the kitchen" >"$W/notes"
"$T" check --set "resources.mem.store=$W/notes" $P >"$W/out" 2>&1
[ $? -eq 1 ] && finds E011 "memory 'mem': $W/notes: is no store file of format 1 or 2" 1:21
ok $? "a file that is no store"
"$T" check --set "resources.mem.store=$W/file" $P >"$W/out" 2>&1
ok $? "an empty file may become one"
"$T" inspect "$W/file" >"$W/out" 2>&1
[ $? -eq 3 ] && says "$W/file: this is an empty file, not a checkpoint"
ok $? "inspect calls it empty"
"$T" check --set "resources.mem.store=$W/no/m" $P >"$W/out" 2>&1
[ $? -eq 0 ] && finds W120 "memory 'mem': $W/no/m: there is no folder $W/no; only folders below the current one are made" 1:21
ok $? "a store whose folder is not there"
"$T" check --set "resources.mem.store=$W/file/m" $P >"$W/out" 2>&1
[ $? -eq 1 ] && finds E011 "memory 'mem': $W/file/m: $W/file is no folder" 1:21
ok $? "a store below a file"
(cd "$W" && "$T" check --root "$root" --set resources.mem.store=new/er/m "$root/$P") >"$W/out" 2>&1 && [ ! -e "$W/new" ]
ok $? "folders below the current one are made by run, not by check"

judge 1 --set inputs.memory.tokens_each=161 &&
    finds E011 "a segment of 'memory' has up to 161 tokens, all of 'mem' in a prompt together 160" 2:27
ok $? "a segment that is longer than all of a prompt"
judge 0 --set inputs.memory.tokens_each=160
ok $? "and one that is as long"
judge 1 --set resources.mem.tokens=10 && finds E011 "a segment of 'memory' has up to 16 tokens, all of 'mem' in a prompt together 10" 2:22 &&
    says "also: $P:19 tokens of one segment"
ok $? "of two fields that of the option, which was changed"
echo 'return extend("demo_memory.lua", { name = "less", resources = { kv.segments { name = "mem", tokens = 10 } } })' >"$W/less.lua"
"$T" check --device cpu "$W/less.lua" >"$W/out" 2>&1
[ $? -eq 1 ] && says "E011.: a segment of 'memory' has up to 16 tokens" && says "^ --> $W/less.lua:1:"
ok $? "or that of the file that changes another one"
judge 1 --set inputs.memory.max_segments=5000 && finds E011 "max_segments: 5000 segments in a prompt, of this model it has at most 1023" 2
ok $? "more segments than a prompt has, at the option"
judge 0 --set inputs.memory.max_segments=1023
ok $? "and as many as it has"
cat >"$W/two.lua" <<'LUA'
return extend("demo_memory.lua", { name = "two",
  inputs = { segments { name = "memory", max_segments = 600 },
             segments { name = "facts", max_segments = 500, tokens_each = 16 } },
  resources = { kv.segments { name = "more", tokens = 64 } },
  nodes = { memory_load { name = "second", reads = { "facts" }, from = "more", into = "ctx", after = "recall", select = "full" },
            prefill { name = "ask", after = "second" } } })
LUA
"$T" check --device cpu "$W/two.lua" >"$W/out" 2>&1
[ $? -eq 1 ] && says "E011.: max_segments: 1100 segments in a prompt, of this model it has at most 1023" && says "^ *--> $W/two.lua:3"
ok $? "of several memories together, at the last one's"
sed -i 's/= 500/= 423/' "$W/two.lua"
"$T" check --device cpu "$W/two.lua" >"$W/out" 2>&1
ok $? "and as many as there may be"

"$T" run --set "resources.mem.store=$W/m" "$P" --frames 1 --input goal=find:cup --input 'memory={"put": {"b": "gone"}}' >"$W/out" 2>&1
"$T" run --set "resources.mem.store=$W/m" "$P" --frames 1 --input goal=find:cup --input \
    'memory={"put": {"a": "the cup\nis red", "b": "the fork"}, "remove": []}' >"$W/out" 2>&1
"$T" run --set "resources.mem.store=$W/m" "$P" --frames 1 --input goal=find:cup --input \
    'memory={"put": {"c": "gone again"}}' >"$W/out" 2>&1
"$T" run --set "resources.mem.store=$W/m" "$P" --frames 1 --input goal=find:cup --input 'memory={"remove": ["c"]}' >"$W/out" 2>&1
"$T" inspect "$W/m" >"$W/out" 2>"$W/err" && says '^texts      2$' && says '^  a, [0-9]* tokens: the cup\\nis red$' &&
    says '^  b, [0-9]* tokens: the fork$' && ! says gone
ok $? "inspect lists a store's texts as they are, a line each"
"$T" inspect --format json "$W/m" >"$W/out" 2>"$W/err" && python3 -S - "$W/out" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
texts = sorted((t["id"], t["text"]) for t in r["texts"])
assert texts == [("a", "the cup\nis red"), ("b", "the fork")] and r["damaged"] == 0, r
assert all(0 < t["tokens"] <= 16 for t in r["texts"]) and r["layout"] == "memory" and r["encoder"], r
END
ok $? "and as JSON, whole"
python3 -S - "$W/m" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.rindex(b"the fork")
data[at] ^= 1
open(sys.argv[1], "wb").write(data)
END
"$T" inspect "$W/m" >"$W/out" 2>"$W/err" && says '^damaged    [1-9]' && ! says 'uhe fork'
ok $? "a damaged text is none, and is counted"
says '^  from byte [1-9][0-9]* on, [1-9][0-9]* bytes: the record is damaged$'
ok $? "with its place and what it is"
"$T" inspect --format json "$W/m" | python3 -S -c 'import json, sys; r = json.load(sys.stdin)
assert r["damaged"] == len(r["damage"]) > 0 and all(d["offset"] >= 4096 and d["bytes"] > 0 and d["what"] for d in r["damage"]), r'
ok $? "in JSON, too"
head -c 3000 "$W/m" >"$W/torn"
"$T" inspect "$W/torn" >"$W/out" 2>&1
[ $? -eq 3 ] && says "ends after byte 3000, within its first page of 4096: there is no text in it, and a run begins it anew$"
ok $? "one that was cut within its first page"
"$T" check --set "resources.mem.store=$W/torn" $P >"$W/out" 2>&1
ok $? "which is no error"
printf 'X' | dd of="$W/m" bs=1 seek=40 conv=notrunc 2>"$W/err"
"$T" inspect "$W/m" >"$W/out" 2>&1
[ $? -eq 3 ] && says "first page of the store file, bytes 0 to 4095, is damaged: its checksum is that of other bytes; "
ok $? "of a first page that is damaged what is wrong with it"
echo "1..$n"
exit $failed
