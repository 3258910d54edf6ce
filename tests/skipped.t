#!/bin/sh
# skipped.t - ticks of a paced run that open no frame: `explain` of the recording counts those between
# its frames, as the run's lines have them. usage: tests/skipped.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
"$T" run pipelines/demo_metaworld.lua --device cpu --threads 1 --random-inputs 1 -n 1500 --clock paced --set frame.period_ms=2 \
    --set nodes.act.deadline.ms=1 --set nodes.act.deadline.limit=100 --record "$W/r.mcap" --format json >"$W/lines" 2>"$W/err"
ok $? "a run whose period is too short"
"$T" explain "$W/r.mcap" --format json >"$W/all" 2>"$W/err" && "$T" explain "$W/r.mcap" >"$W/out" 2>>"$W/err"
ok $? "explain of its recording"
python3 -S - "$W/lines" "$W/all" "$W/out" <<'PYTHON' 2>>"$W/err"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
of, text = json.load(open(sys.argv[2])), open(sys.argv[3]).readline()
ran = [i for i, line in enumerate(lines) if not line.get("skipped")]
between = ran[-1] - ran[0] + 1 - len(ran)
assert between > 0 and of["frames"] == len(ran), (between, of["frames"], ran)
assert of["skipped"] == between, (of["skipped"], between)
assert "; %d tick%s between them opened no frame: %d of %d ticks missed" % (
    between, "" if between == 1 else "s", between + of["missed"], between + len(ran)) in text, text
PYTHON
ok $? "ticks between frames are counted"
"$T" run pipelines/demo_metaworld.lua --device cpu --threads 1 --random-inputs 1 -n 3 --record "$W/s.mcap" >"$W/out" 2>"$W/err" &&
    "$T" explain "$W/s.mcap" >"$W/out" 2>>"$W/err" && ! grep -q "opened no frame" "$W/out"
ok $? "frames that follow each other skip none"
echo "1..$n"
exit $failed
