#!/bin/sh
# demo_memory.t - the bundled planner with its memory, as doc/memory.md shows it: facts put, changed and removed
# between questions, kept over a restart and a kill -9; its prompt is the text that the planner was trained on.
# usage: tests/demo_memory.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
C=pipelines/checkpoints/planner

# tell STORE OPTION...: frames into $W/out; said: what was answered, on one line.
tell() {
    store=$1
    shift
    timeout 120 "$T" run pipelines/demo_memory.lua --threads 1 --set "resources.mem.store=$W/$store" "$@" \
        >"$W/out" 2>"$W/err" </dev/null
}
said() { sed -n 's/.*  "\(.*\)"$/\1/p' "$W/out" | tr '\n' ' '; }
counts() { sed -n 's/.*memory: \([0-9]* remembered, [0-9]* in the prompt\).*/\1/p' "$W/out" | tr '\n' ';'; }

# What the document says: its lines, and what it says that they print.
grep '^{"goal"' doc/memory.md >"$W/facts.jsonl"
sed -n 's/^ *[0-9]  no actions .*  "\(:.*\)"$/\1/p' doc/memory.md >"$W/printed"
check "doc/memory.md has four lines and five answers" \
    test "$(wc -l <"$W/facts.jsonl")" -eq 4 -a "$(wc -l <"$W/printed")" -eq 5
tell m --inputs "$W/facts.jsonl"
check "they run" test $? -eq 0
check "put, changed, removed: each answer is right" test "$(said)" = ":fridge:open :table:go :table :table:go "
check "as the document prints them" test "$(said)" = "$(head -n 4 "$W/printed" | tr '\n' ' ')"
check "a frame's line has what is there and what its prompt had" test "$(counts)" = \
    "3 remembered, 3 in the prompt;3 remembered, 3 in the prompt;2 remembered, 2 in the prompt;2 remembered, 2 in the prompt;"
tell drawn --random-inputs 3 -n 2
check "facts that are drawn fit the memory" test $? -eq 0 -a "$(counts)" = "6 remembered, 6 in the prompt;6 remembered, 6 in the prompt;"
tell m --input goal=find:fork
check "a restart remembers" test "$(said)" = ":table " -a "$(counts)" = "2 remembered, 2 in the prompt;"
tell m --input goal=find:fork --frames 3 --set 'nodes.answer.spawn=on_change()'
check "on_change() asks when the goal changes, and then alone" test "$(said)" = ":table "

# Vectors of another encoder are made anew when the file is opened, each robot's; keys and values stay.
E=tests/golden/encoders
with() {
    store=$1 encoder=$2
    shift 2
    tell "$store" --input goal=find:fork --set "resources.mem.encoder=$E/$encoder/checkpoint" "$@"
}
kept() { test "$(said)" = ":table " && grep -q '2 remembered, 2 in the prompt, 0 without kept keys' "$W/out"; }
cp "$W/m" "$W/vectors"
with vectors minilm_tiny
check "another encoder, of another width: kept keys answer" kept
check "which is said, with both" grep -q "^tectum run: memory 'mem': $W/vectors has vectors of the encoder 'none: the texts' words'.*, the pipeline's is '$E/minilm_tiny/checkpoint, mean' ([0-9a-f]*): 2 of 2 were another's and were made anew" "$W/err"
with vectors minilm_tiny
check "the file says whose they are now: nothing is said" test ! -s "$W/err"
"$T" inspect "$W/vectors" >"$W/out" 2>&1
check "inspect shows it" grep -q "^encoder    $E/minilm_tiny/checkpoint, mean ([0-9a-f]*), vectors of 64 numbers" "$W/out"
mkdir -p "$W/copy"
cp -RL $E/minilm_tiny/checkpoint "$W/copy/encoder"
tell vectors --input goal=find:fork --set "resources.mem.encoder=$W/copy/encoder"
check "a copy of the encoder elsewhere is the same one" test ! -s "$W/err"
# An adapter is bytes, too: its copy, with other times and its base's other path, is the same one.
adapter() { # FOLDER ALPHA: one that changes the words' vectors of the base beside it
    python3 - "$W/copy/encoder/model.safetensors" "$1" "$2" <<'END'
import json, os, struct, sys
model, folder, alpha = sys.argv[1:]
with open(model, "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
name = next(n for n in sorted(header) if n.endswith("query.weight"))
rows, cols = header[name]["shape"]
name, raw = name.removesuffix(".weight"), struct.pack("<f", 0.25)
text = json.dumps({
    f"base_model.model.{name}.lora_A.weight": {"dtype": "F32", "shape": [1, cols], "data_offsets": [0, 4 * cols]},
    f"base_model.model.{name}.lora_B.weight": {"dtype": "F32", "shape": [rows, 1],
                                               "data_offsets": [4 * cols, 4 * (cols + rows)]}}).encode()
text += b" " * (-len(text) % 8)
with open(f"{folder}/adapter_model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + raw * (rows + cols))
with open(f"{folder}/adapter_config.json", "w") as file:
    json.dump({"peft_type": "LORA", "r": 1, "lora_alpha": float(alpha), "target_modules": ["query"],
               "base_model_name_or_path": os.path.dirname(os.path.abspath(model))}, file)
END
}
if command -v python3 >/dev/null 2>&1; then
    cp "$W/vectors" "$W/adapted"
    cp -R "$W/copy/encoder" "$W/copy/lora"
    rm "$W/copy/lora/model.safetensors"
    adapter "$W/copy/lora" 1
    tell adapted --input goal=find:fork --set "resources.mem.encoder=$W/copy/lora"
    check "with an adapter it is another one" grep -q "2 of 2 were another's" "$W/err"
    cp -R "$W/copy" "$W/moved"
    sed -i "s|$W/copy/|$W/moved/|" "$W/moved/lora/adapter_config.json"
    touch -d 2001-01-01 "$W/moved/lora/adapter_model.safetensors" "$W/copy/lora/adapter_model.safetensors"
    tell adapted --input goal=find:fork --set "resources.mem.encoder=$W/moved/lora"
    check "its copy elsewhere, of another time, is the same one" test $? -eq 0 -a ! -s "$W/err"
    adapter "$W/copy/lora" 3
    tell adapted --input goal=find:fork --set "resources.mem.encoder=$W/copy/lora"
    check "with another scale it is another one" grep -q "of 2 were another's" "$W/err"
fi
echo '{"prompts": {"p": "a fact: "}, "default_prompt_name": "p"}' >"$W/copy/encoder/config_sentence_transformers.json"
tell vectors --input goal=find:fork --set "resources.mem.encoder=$W/copy/encoder"
check "with a prompt it is another one" grep -q "mean, prompt \"a fact: \"' ([0-9a-f]*): 2 of 2 were another's" "$W/err"
check "and kept keys answer" kept
# 24 bytes of a prompt are shown, which end inside a character here.
echo '{"prompts": {"p": "a fact, as it is said: \u00e4\u00e4\u00e4"}, "default_prompt_name": "p"}' \
    >"$W/copy/encoder/config_sentence_transformers.json"
cp "$W/vectors" "$W/letters"
tell letters --input goal=find:fork --set "resources.mem.encoder=$W/copy/encoder"
"$T" inspect "$W/letters" >"$W/out" 2>&1
check "a prompt is cut between two characters" grep -q 'mean, prompt "a fact, as it is said: " ' "$W/out"
cp "$W/vectors" "$W/vectors.1"
with vectors minilm_odd --set frame.sessions=2
check "of several robots each file" test "$(grep -c '2 of 2 were another' "$W/err")" -eq 2

# Keys and values of other weights are dropped when the file is opened: one bit of one tensor is enough.
mkdir -p "$W/trained"
cp -RL $C/. "$W/trained"
check "the file of the planner that was trained on" test "$(wc -c <"$W/trained/model.safetensors")" -gt 1000000
printf '\001' | dd of="$W/trained/model.safetensors" bs=1 seek=1000000 conv=notrunc 2>"$W/err"
cp "$W/m" "$W/weights"
tell weights --input goal=find:fork --weights "$W/trained"
check "other weights: texts stay" test "$(counts)" = "2 remembered, 2 in the prompt;"
check "which is said in one line" test "$(grep -c "^tectum run: memory 'mem': $W/weights has keys and values of other weights or roundings of this model, or names none: those of 2 segments are computed again; texts stay" "$W/err")" -eq 1
cp "$W/m" "$W/weights"
tell weights --input goal=find:fork --set model.round=mixed
check "other roundings: texts stay" test "$(counts)" = "2 remembered, 2 in the prompt;"
check "and keys are computed again" grep -q "weights or roundings of this model, or names none: those of 2 segments" "$W/err"
tell weights --input goal=find:fork --set model.round=mixed
check "once" test ! -s "$W/err"
"$T" run pipelines/demo_memory.lua --set "resources.mem.store=$W/weights" --input goal=find:fork -n 1 --dtype f32 >"$W/out" 2>"$W/err"
check "of another dtype a file is refused" test "$?" -eq 3
check "in one line" grep -q "holds KV of another dtype" "$W/err"
cp "$W/m" "$W/weights"
cp -RL $C/. "$W/trained"
tell weights --input goal=find:fork --weights "$W/trained"
check "a copy of the planner elsewhere is the same one" kept
# So they are where the tokenizer has other rules and the same pieces, and tokens are counted anew: no fact is left out.
mkdir "$W/rules"
cp $C/*.json "$W/rules"
sed -i '/^ *"[a-z] n",$/d' "$W/rules/tokenizer.json"
check "a tokenizer that lacks a merge" test "$(wc -c <"$W/rules/tokenizer.json")" -lt "$(wc -c <$C/tokenizer.json)"
cp "$W/m" "$W/tokens"
tell tokens --input goal=find:fork --tokenizer "$W/rules"
check "other rules of a tokenizer: all facts are in the prompt" test "$(counts)" = "2 remembered, 2 in the prompt;"
check "which is said in one line" grep -q "^tectum run: memory 'mem': $W/tokens was written with a tokenizer of other rules, or names none: keys and values of 2 segments are computed again, tokens were counted anew, which are others for [12] of 2 texts; texts stay$" "$W/err"
tell tokens --input goal=find:fork --tokenizer "$W/rules"
check "once" test ! -s "$W/err"
timeout 60 "$T" check --set nodes.recall.after=ask pipelines/demo_memory.lua >"$W/out" 2>&1
check "a memory that waits for its own prompt is told once" test "$(grep -c 'E026' "$W/out")" -eq 1

tell m --input goal=find:fork --set "resources.mem.store=$W/nowhere/m"
check "a store of --set that cannot be opened is told there" grep -q "^tectum run: --set:2: memory 'mem': $W/nowhere/m: there is no folder" "$W/err"
timeout 60 "$T" check --set 'nodes.recall.reads=[memory]' pipelines/demo_memory.lua >"$W/out" 2>&1
check "how a list is written in --set" grep -q "= help: --set takes a list as JSON: --set 'nodes.recall.reads=\[\"a\", \"b\"\]'" "$W/out"
check "with carets" grep -q '^ *| *^^^^^^^^$' "$W/out"

# Where not all fit, the best are taken, and stand as they were put.
cat >"$W/many.jsonl" <<'END'
{"goal": "fetch:fork", "memory": {"put": {"fridge": "{position:kitchen,state:closed,object:fridge}\n", "cup": "{position:fridge,state:clean,object:cup}\n", "fork": "{position:fridge,state:dirty,object:fork}\n", "pan": "{position:sofa,state:dirty,object:pan}\n", "box": "{position:bed,state:dirty,object:box}\n"}}}
{"goal": "find:box"}
END
tell m3 --inputs "$W/many.jsonl" --set resources.ctx.tokens=30
check "three facts of five fit: the right ones" test "$(said)" = ":fridge:open :bed " -a "$(counts)" = \
    "5 remembered, 3 in the prompt;5 remembered, 3 in the prompt;"

# Killed while frames run: what was put is there, and the answers are right.
"$T" run pipelines/demo_memory.lua --threads 1 --set "resources.mem.store=$W/killed" --frames 100000000 \
    --input goal=find:fork --input 'memory={"put": {"cup": "{position:sofa,state:none,object:cup}\n",
        "fork": "{position:cup,state:none,object:fork}\n"}}' >"$W/out" 2>"$W/err" </dev/null &
program=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 1
    [ "$(wc -l <"$W/out")" -lt 20 ] || break
done
kill -9 $program
wait $program 2>/dev/null
check "a run that is killed was answering" grep -q '":sofa"' "$W/out"
tell killed --input goal=fetch:fork
check "after kill -9 everything is remembered" test "$(said)" = ":sofa:go " -a \
    "$(counts)" = "2 remembered, 2 in the prompt;"

# One bit of the newest text of a file that was closed: the segment is gone, and run and serve say which, where and of
# what file; the older text is not back.
at=$(grep -abo 'position:table' "$W/m" | head -n 1 | cut -d : -f 1)
cp "$W/m" "$W/spoilt"
printf 'q' | dd of="$W/spoilt" bs=1 seek="$((at))" conv=notrunc 2>/dev/null
cp "$W/spoilt" "$W/spoilt2"
tell spoilt --input goal=find:fork --format json
check "a damaged record is said, with file, byte and segment" \
    grep -q "$W/spoilt is damaged at byte [0-9]*: segment 'cup', the record is damaged" "$W/err"
check "and is in the JSON" grep -q "\"damaged\":{\"records\":1,\"file\":\"$W/spoilt\",\"first\":\[{\"offset\":[0-9]*,\"bytes\":[0-9]*,\"segment\":\"cup\"" "$W/out"
check "no older text is back" grep -q '"stored":1,' "$W/out"
"$T" serve pipelines/demo_memory.lua --threads 1 --port 0 --control "$W/socket" --format json \
    --set "resources.mem.store=$W/spoilt2" >"$W/out" 2>"$W/err" </dev/null &
program=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    ! grep -q '^serving' "$W/out" || break
    sleep 1
done
"$T" policy status --control "$W/socket" --format json >"$W/status" 2>&1
kill $program
wait $program
check "serve says it, too" grep -q "$W/spoilt2 is damaged at byte [0-9]*: segment 'cup'" "$W/err"
check "it is in the status of a server" grep -q '"memory": *{"stored": *1, *"damaged": *{"records": *1' "$W/status"
check "and in its summary" grep -q '"memory":{"stored":1,"damaged":{"records":1' "$W/out"
check "which is said in words" grep -q "$W/spoilt2: 1 damaged part could not be used, the first at byte [0-9]* (cup: " "$W/err"

# A file that was cut with its first page or within it has no text left, which is said.
for bytes in 0 5 2000 4095 4096; do
    head -c $bytes "$W/m" >"$W/cut"
    tell cut --input goal=find:fork
    check "cut after $bytes bytes: the run goes on without texts" test $? -eq 0 -a "$(counts)" = "0 remembered, 0 in the prompt;"
    check "which one line says" grep -q "^tectum run: memory 'mem': $W/cut \(is empty\|ends within its first page, after $bytes bytes of 4096: it was cut, or its making was\|ends behind its first page: it was cut there, or no text was ever written to it\); it begins without texts$" "$W/err"
    check "and no other" test "$(wc -l <"$W/err")" -eq 1
    tell cut --input goal=find:fork
    check "once" test ! -s "$W/err"
done
tell fresh --input goal=find:fork
check "nothing is said of a file that was not there" test ! -s "$W/err"

# Everything computed anew: the ids are those of the whole text, the answers those of the whole prompt.
if command -v python3 >/dev/null 2>&1; then
    cat >"$W/ask.py" <<'END'
import json, sys
kind, source, folder = sys.argv[1:]
if kind == "write":
    facts, whole, want, before = [], [], [], []
    for k, line in enumerate(open(source)):
        if k == 60:
            break
        q = json.loads(line)
        ids = [f"{k}.{i}" for i in range(len(q["segments"]))]
        facts.append({"goal": q["query"], "memory": {"remove": before, "put": dict(zip(ids, q["segments"]))}})
        whole.append({"prompt": q["prefix"] + "".join(q["segments"]) + q["query"]})
        want.append(q["answer"])
        before = ids
    for name, rows in (("facts.jsonl", facts), ("whole.jsonl", whole)):
        open(f"{folder}/{name}", "w").write("".join(json.dumps(r) + "\n" for r in rows))
    open(f"{folder}/want", "w").write("\n".join(want) + "\n")
else: # the prompts of a dump, as bytes
    data = open(source, "rb").read()
    head = int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8:8 + head])
    at = lambda name: data[8 + head + tensors[name]["data_offsets"][0]:8 + head + tensors[name]["data_offsets"][1]]
    counts, ids = memoryview(at("prompt_tokens")).cast("i"), memoryview(at("prompt_ids")).cast("i")
    room = len(ids) // len(counts)
    for i, n in enumerate(counts):
        print(ids[i * room:i * room + n].tolist())
END
    python3 "$W/ask.py" write $C/questions.jsonl "$W"
    tell q --inputs "$W/facts.jsonl" --dump "$W/facts.dump"
    said | tr ' ' '\n' | sed '/^$/d' >"$W/answers"
    check "60 questions of those that ship: right answers" cmp "$W/answers" "$W/want"
    timeout 120 "$T" run pipelines/demo_planner.lua --threads 1 --inputs "$W/whole.jsonl" --dump "$W/whole.dump" \
        --drain >"$W/out" 2>"$W/err" </dev/null
    python3 "$W/ask.py" read "$W/facts.dump" "$W" >"$W/facts.ids"
    python3 "$W/ask.py" read "$W/whole.dump" "$W" >"$W/whole.ids"
    check "the ids of a prompt with a memory are those of the whole text" cmp "$W/facts.ids" "$W/whole.ids"
    check "and there are 60" test "$(wc -l <"$W/facts.ids")" -eq 60
    tell q2 --inputs "$W/facts.jsonl" --set nodes.recall.order=best_first
    said | tr ' ' '\n' | sed '/^$/d' >"$W/answers"
    check "the best first, which it was not trained on, is worse" test \
        "$(paste -d ' ' "$W/answers" "$W/want" | awk '$1 == $2' | wc -l)" -lt 50
fi
echo "1..$n"
exit $failed
