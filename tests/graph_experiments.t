#!/bin/sh
# graph_experiments.t - graphs.py of the experiments makes its tables; no time of this run means anything.
# usage: tests/graph_experiments.t [PROGRAM]; else the first of build/*/tectum. From the root.
. "$(dirname "$0")/opening.sh"
python3 tests/experiments/graphs.py "$T" --size tiny --frames 6 --threads 1 -o "$W/out" g13_plan_is_prompt g24_many_robots \
    >"$W/log" 2>&1
[ $? -lt 2 ]; ok $? "it ends" # 1: a busy machine missed a deadline
grep '^Traceback' "$W/log"; [ $? = 1 ]; ok $? "and not by an error"
for graph in g13_plan_is_prompt g24_many_robots; do
    [ "$(grep -c "^| $graph |" "$W/out/graphs.md")" = 2 ]; ok $? "$graph is in both tables"
done
grep -q '"unknown": 0' "$W/out/graphs.json" && ! grep -q '"unknown": [1-9]' "$W/out/graphs.json"
ok $? "every launch has a part alone"
echo "1..$n"
exit $failed
