#!/bin/sh
# planner.t - the bundled planner answers its questions through `tectum run`; the scripts of its training are whole.
# usage: tests/planner.t [PROGRAM]; or TECTUM=PROGRAM; else the first of build/*/tectum.
. "$(dirname "$0")/opening.sh"
C=pipelines/checkpoints/planner
asked=100 # questions, of those that ship: all are right when it is made, one may fall to another rounding
report() { # report NAME WHAT_IS_WRONG
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else failed=1; echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /' >&2; fi
}
if command -v python3 >/dev/null 2>&1; then
    report "Python compiles" "$(python3 -c '
import sys
for name in sys.argv[1:]:
    compile(open(name).read(), name, "exec")' pipelines/checkpoints/planner/train/*.py 2>&1)"
    report "the questions that ship are those of the generator" "$(
        PYTHONDONTWRITEBYTECODE=1 python3 pipelines/checkpoints/planner/train/questions.py "$W/questions.jsonl" 2>&1
        cmp "$W/questions.jsonl" $C/questions.jsonl 2>&1)"
fi
report "make.sh parses" "$(sh -n pipelines/checkpoints/planner/train/make.sh 2>&1)"
report "every requirement is pinned" "$(grep -vE '^#|^[a-z0-9-]+==[0-9.]+$' pipelines/checkpoints/planner/train/requirements.txt)"
if [ ! -x "$T" ]; then
    echo "1..$n # SKIP the rest: no program"
    exit $failed
fi

# The whole prompt of each question, and what must be said.
head -n $asked $C/questions.jsonl >"$W/asked"
sed -E 's/^\{"prefix": "([^"]*)", "segments": \[(.*)\], "query": "([^"]*)".*/\1\2\3/; s/", "|"//g; s/.*/{"prompt": "&"}/' \
    "$W/asked" >"$W/prompts.jsonl"
sed -E 's/.*"answer": "([^"]*)".*/\1/' "$W/asked" >"$W/want"

# answers NAME OPTIONS...: what is said to each question, a line each, in $W/NAME
answers() {
    name=$1
    shift
    timeout 120 "$T" run pipelines/demo_planner.lua --inputs "$W/prompts.jsonl" --format json --drain "$@" \
        >"$W/out" 2>"$W/err" </dev/null || return 1
    grep -oE '"request":[0-9]+,"tokens":\[[0-9,]*\],"text":"[^"]*"' "$W/out" |
        sed -E 's/"request":([0-9]+),.*"text":"([^"]*)"/\1 \2/' |
        awk '{ said[$1] = said[$1] $2; if ($1 + 0 > last) last = $1 + 0 }
             END { for (i = 0; i <= last; i++) print said[i] }' >"$W/$name"
}

answers one --threads 1
report "the planner runs" "$([ $? -eq 0 ] || cat "$W/err")"
right=$(paste -d ' ' "$W/one" "$W/want" | awk '$1 == $2 { n++ } END { print n + 0 }')
[ "$right" -ge 99 ]
report "$right of $asked answers are right, at least 99" "$([ "$right" -ge 99 ] || paste "$W/one" "$W/want" | head)"
# The line of doc/planner.md, as it stands there.
grep '^{"prompt": "robot memory' doc/planner.md >"$W/line.jsonl"
timeout 120 "$T" run pipelines/demo_planner.lua --threads 1 --inputs "$W/line.jsonl" >"$W/out" 2>"$W/err" </dev/null
report "the line of doc/planner.md is answered" "$(grep -q '  ":fridge:open"$' "$W/out" || cat "$W/out" "$W/err")"
answers again --threads 2
report "the same answers with two threads" "$(cmp "$W/one" "$W/again" 2>&1)"
echo "1..$n"
exit $failed
