#!/bin/sh
# schedules.t - `tectum simulate` against a second implementation of the rules of the golden
# schedules, event by event: the golden cases, then random scenarios.
# usage: tests/schedules.t [PROGRAM [FIRST COUNT]]; or TECTUM=PROGRAM; else the first of
# build/*/tectum. FIRST and COUNT are seeds of the random scenarios.
. "$(dirname "$0")/opening.sh"
FIRST=${2:-1} COUNT=${3:-150}
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "1..0 # SKIP no Python 3.10"
    exit 0
fi

judge() { python3 -B tests/schedule_scenarios.py "$T" "$@" >"$W/out" 2>&1; }

judge golden tests/golden/schedules
status=$?
ok $status "$(grep -c ' reference ok$' "$W/out") golden cases: the second implementation agrees"
[ "$(grep -c ' simulate ok$' "$W/out")" -ge 31 ]
ok $? "$(grep -c ' simulate ok$' "$W/out") golden cases: simulate agrees"

judge random "$FIRST" "$COUNT"
status=$?
[ "$status" -eq 0 ] && [ "$(grep -c ' ok$' "$W/out")" -eq "$COUNT" ]
ok $? "$(grep -c ' ok$' "$W/out") of $COUNT random scenarios agree, seeds from $FIRST"

rings() { python3 -B tests/schedule_ring.py "$T" "$@" >"$W/out" 2>&1; }

rings golden tests/golden/schedules
status=$?
[ "$status" -eq 0 ] && [ "$(grep -c ' ok$' "$W/out")" -ge 20 ]
ok $? "$(grep -c ' reference ok$' "$W/out") golden rings: the second implementation and simulate agree"
rings random "$FIRST" "$COUNT"
status=$?
[ "$status" -eq 0 ] && [ "$(grep -c ' ok$' "$W/out")" -eq "$COUNT" ]
ok $? "$(grep -c ' ok$' "$W/out") of $COUNT random rings agree, seeds from $FIRST"

# one event that comes late, one that is missing, one that is not there
mkdir "$W/golden" && cp -r tests/golden/schedules/oxy_fig3 "$W/golden/a" && chmod -R u+w "$W/golden"
cp -r "$W/golden/a" "$W/golden/b" && cp -r "$W/golden/a" "$W/golden/c"
sed 's/"t_us":257400,/"t_us":257403,/' "$W/golden/b/expected.jsonl" >"$W/golden/a/expected.jsonl"
sed 's/"done":12/"done":11/' "$W/golden/c/expected.jsonl" >"$W/golden/b/expected.jsonl"
tail -n 1 "$W/golden/a/expected.jsonl" >>"$W/golden/c/expected.jsonl"
judge golden "$W/golden"
[ $? -eq 1 ] && [ "$(grep -c differs "$W/out")" -eq 6 ]
ok $? "what differs is found"

echo "1..$n"
exit $failed
