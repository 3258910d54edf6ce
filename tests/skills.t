#!/bin/sh
# skills.t - ranking texts and answering from a list, from the outside: every score is that of its
# text alone, whatever the list, its order and the threads; answers are texts of the list.
# usage: tests/skills.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"

tectum() { timeout 120 "$T" "$@" >"$W/out" 2>"$W/err" </dev/null; }
# run FILE OPTION...: random weights, the tokenizer of the golden cases, a line of JSON a frame
run() {
    file=$1
    shift
    tectum run "$file" --random-weights 3 --size small --format json \
        --tokenizer tests/golden/tokenizers/qwen_like/tokenizer.json \
        --set nodes.say.max_tokens=40 --set resources.answers.tokens=552 "$@"
}
# ranked FILE: a line for each text of the first frame's ranking, score and text
ranked() {
    sed -n '1s/.*"ranking":\[\(.*\)\]}\],.*/\1/p' "$1" | sed 's/},{/}\n{/g' |
        sed 's/.*"text":"\([^"]*\)","log_likelihood":\([^}]*\)}/\2 \1/'
}
P=pipelines/qwen_skills.lua
task='prompt=put a clean mug on the desk'

tectum run $P --random-weights 1 --size tiny --input "$task" --frames 2 &&
    [ "$(grep -c 'of 214$' "$W/out")" -eq 2 ]
ok $? "tiny random weights without a tokenizer: two frames, 214 skills each"

run $P --input "$task" && ranked "$W/out" >"$W/all"
[ "$(wc -l <"$W/all")" -eq 214 ] && cut -d' ' -f1 "$W/all" | sort -g -r -c
ok $? "a ranking has every skill, the likeliest first"
best=$(head -n 1 "$W/all" | cut -d' ' -f2-)
grep -q "\"text\":\"$best\",\"done\":true,\"reason\":\"ranked\"" "$W/out"
ok $? "the node says the likeliest one"

run $P --input "$task" --threads 2 && ranked "$W/out" | cmp -s - "$W/all"
ok $? "two threads: the same numbers"

cat >"$W/few.lua" <<'EOF'
local some = {}
for i, text in ipairs(include("skills/household.lua")) do
  if i % 7 == 0 then some[#some + 1] = text end
end
local back = {}
for i = #some, 1, -1 do back[#back + 1] = some[i] end
return extend("qwen_skills.lua", { nodes = { { name = "choose", candidates = back } } })
EOF
run "$W/few.lua" --input "$task" && ranked "$W/out" >"$W/few" && [ "$(wc -l <"$W/few")" -eq 30 ] &&
    grep -Fx -f "$W/few" "$W/all" | cmp -s - "$W/few"
ok $? "every seventh skill, backwards: their lines are those among all"
alone() { printf 'return extend("qwen_skills.lua", { nodes = { { name = "choose", %s } } })\n' "$1" >"$W/one.lua"; }
alone 'candidates = { " find a mug" }'
run "$W/one.lua" --input "$task" && ranked "$W/out" >"$W/one" && grep -Fqx -f "$W/one" "$W/all"
ok $? "one skill alone: its line among all"
alone 'candidates = { " find a mug", " done" }, ends = true'
run "$W/one.lua" --input "$task" && ranked "$W/out" >"$W/end" &&
    awk 'NR == FNR { if ($2 " " $3 " " $4 == " find a mug") s = $1; next }
         /find a mug/ { if (!($1 < -1)) bad = 1; seen = 1 } END { exit bad || !seen }' "$W/one" "$W/end" &&
    ! grep -Fqx -f "$W/end" "$W/all"
ok $? "with the end token behind them scores are others"
alone 'mean = true'
run "$W/one.lua" --input "$task" && ranked "$W/out" >"$W/mean" && [ "$(wc -l <"$W/mean")" -eq 214 ] &&
    ! cmp -s "$W/mean" "$W/all"
ok $? "the mean of the tokens: another order"

cat >"$W/in.jsonl" <<'EOF'
{"prompt": "put a clean mug on the desk", "#ask": [{"node": "say"}]}
{"prompt": "bring me a book", "#ask": [{"node": "say"}]}
EOF
run $P --inputs "$W/in.jsonl" --drain
sed -n 's/.*"say":\[{\(.*\)}\]},"plan".*/\1/p' "$W/out" | grep '"done":true' >"$W/said"
[ "$(grep -c '"reason":"choice"' "$W/said")" -eq 2 ] &&
    sed 's/.*"text":"\([^"]*\)".*/\1/' "$W/said" | while IFS= read -r text; do
        cut -d' ' -f2- "$W/all" | grep -Fqx "$text" || exit 1
    done
ok $? "answers are skills of the list, and end there"

refused() { # refused TEXT-IN-ERROR WHAT
    [ "$status" -eq 1 ] && grep -q -- "$1" "$W/out" "$W/err"
    ok $? "$2"
}
alone 'candidates = { " find a mug", "" }'
tectum check "$W/one.lua" --random-weights 1 --size tiny
status=$?
refused "entry 2 of 'candidates' of score must be a text in quotes, not empty" "an empty candidate is refused with its place"
printf '%s\n' 'return extend("pi05_libero.lua", { nodes = { score { name = "choose", kv = "obs",' \
    'candidates = { "a", "b" }, spawn = every(1), out = stream "x" } } })' >"$W/bidir.lua"
tectum check "$W/bidir.lua" --random-weights 1 --size tiny
status=$?
refused "text sees all" "a model whose text sees all of its prompt cannot rank"

tectum profile $P --random-weights 1 --size tiny --frames 20 --rounds 1 -o "$W/costs" &&
    grep -q '"node": *"choose"' "$W/costs"
ok $? "profile has a row of it"
tectum simulate $P --costs "$W/costs" --frames 5 --random-weights 1 --size tiny
ok $? "simulate runs it"

echo "1..$n"
exit $failed
