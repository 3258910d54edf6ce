#!/bin/sh
# interpret.t - compiled graphs give what the interpreter gives: actions and texts, byte for byte;
# launches of both are in their frames.
# usage: tests/interpret.t [PROGRAM]
#
# Each pipeline of tests/frozen/pipelines.txt runs twenty frames of random inputs under the default
# plan and under policy chaos, compiled and with `tectum run --interpret`. A plan that looks at times
# may start a text's next tokens in another frame, so of two texts of a request one must begin with
# the other; chaos looks at none, and texts are run to their ends, but for those that their deadline
# cuts on a busy machine.
. "$(dirname "$0")/opening.sh"

cat >"$W/compare.py" <<'PYTHON'
import json, sys
def read(path):
    frames = [json.loads(line) for line in open(path)]
    assert len(frames) >= 20, "frames are missing"
    texts, late = {}, set()
    for f in frames:
        for l in f["plan"]["launches"]:
            assert f["start_us"] <= l["start_us"] <= l["end_us"] <= f["end_us"], "a launch is not in its frame"
        for node, list_ in (f.get("text") or {}).items():
            for t in list_:
                texts.setdefault((node, t["request"]), []).extend(t.get("tokens") or [])
                if t.get("reason") == "deadline":
                    late.add((node, t["request"]))
    return [(f["frame"], f["actions"]) for f in frames if f.get("actions")], texts, late
whole = sys.argv[3] == "chaos"
(a, s, x), (b, t, y) = read(sys.argv[1]), read(sys.argv[2])
n = min(len(a), len(b))
assert a[:n] == b[:n] and (n > 0 or len(a) == len(b)) and (not whole or len(a) == len(b)), "actions differ"
for key in s.keys() & t.keys():
    m = min(len(s[key]), len(t[key]))
    assert s[key][:m] == t[key][:m] and (not whole or key in x | y or len(s[key]) == len(t[key])), f"text of {key} differs"
PYTHON

# run NAME PIPELINE POLICY ARGUMENTS...
run() {
    name=$1 pipeline=$2 policy=$3
    shift 3
    rm -f "$W"/*.memory "$W"/build/* # that the run before has left
    (cd "$W" && "$T" run "$root/$pipeline" --root "$root" --random-weights 1 --size tiny --random-inputs 1 -n 20 \
        --threads 1 --policy "$policy" --format json "$@" >"$W/$name" 2>"$W/err" </dev/null)
}

while read -r p _; do
    for policy in default chaos; do
        drain=
        [ $policy = chaos ] && drain=--drain
        run compiled "$p" $policy $drain
        run interpreted "$p" $policy $drain --interpret &&
            python3 -S "$W/compare.py" "$W/compiled" "$W/interpreted" $policy >>"$W/err" 2>&1
        status=$?
        n=$((n + 1))
        if [ $status -eq 0 ]; then echo "ok $n - $p, $policy: compiled as interpreted"
        else
            failed=1
            echo "not ok $n - $p, $policy: compiled as interpreted"
            sed 's/^/# /' "$W/err" | tail -n 3
        fi
    done
done <tests/frozen/pipelines.txt
echo "1..$n"
exit $failed
