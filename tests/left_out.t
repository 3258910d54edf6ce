#!/bin/sh
# left_out.t - actions that a policy leaves out of a frame: the robot is given what on_miss says, and
# it is no miss.
# usage: tests/left_out.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
alone=pipelines/graphs/g16_action_may_be_skipped.lua

cat >"$W/odd.lua" <<'LUA'
return policy { name = "odd", api = 1, version = 1, plan = function(S, F, D)
  if F.index % 2 == 1 then D:skip("act", "odd") end
  for i = 1, F.nreq do D:decode(i, 4) end
end }
LUA
echo "return extend(\"pi05_libero.lua\", { nodes = { action { name = \"act\", when = policy() } } })" >"$W/talks.lua"
cat >"$W/two.lua" <<'LUA'
return extend("graphs/g04_two_heads.lua", {
  resources = { without "lang" }, policy = without "policy", nodes = { action { name = "act", when = policy() }, without "talk" },
})
LUA

# run NAME PIPELINE ARGUMENTS...
run() {
    name=$1 pipeline=$2
    shift 2
    "$T" run "$pipeline" --root "$root" --random-weights 1 --size tiny --random-inputs 1 -n 6 --format json "$@" \
        >"$W/$name" 2>"$W/err" </dev/null
}

# is DESCRIPTION EXPRESSION: of `f(NAME)`, the frames of a run
is() {
    python3 - "$W" "$2" >"$W/out" 2>&1 <<'PYTHON'
import json, sys
def f(name):
    return [json.loads(line) for line in open(f"{sys.argv[1]}/{name}")]
def acts(name, node="act"):
    return [x["actions"].get(node) or None for x in f(name)]
def ran(name):
    return [[l["node"] for l in x["plan"]["launches"]] for x in f(name)]
def odd(list_):
    return list_[1::2]
def even(list_):
    return list_[::2]
assert eval(sys.argv[2]), "is not so"
PYTHON
    ok $? "$1"
}

for p in "$alone" "$W/talks.lua" "$W/two.lua"; do
    of=$(basename "$p" .lua)
    run whole "$p" --policy default
    run odd "$p" --policy "$W/odd.lua"
    run odd_interpreted "$p" --policy "$W/odd.lua" --interpret
    is "$of: frames with actions have those of a run that leaves none out" \
        'even(acts("odd")) == even(acts("whole")) and all(even(acts("odd")))'
    is "$of: in the others the node does not run," \
        'odd(acts("odd")) == [None] * 3 and all("act" not in x for x in odd(ran("odd")))'
    is "$of: as the interpreter has it" 'acts("odd") == acts("odd_interpreted")'
done
is "the other action node goes on" 'acts("odd", "act_early") == acts("whole", "act_early") and all(acts("odd", "act_early"))'
run odd "$alone" --policy "$W/odd.lua"
is "nothing runs where nobody reads the prefix" 'odd(ran("odd")) == [[]] * 3'
# On a clock that no other program disturbs.
"$T" simulate "$alone" --launch-ms 1 -n 6 --clock paced --policy "$W/odd.lua" --format json >"$W/out" 2>"$W/err"
check "paced: three chunks leave, and no frame missed" \
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1]))["rows"][0]; assert r["missed"] == 0 and r["frames"] == 6, r' "$W/out"

echo "1..$n"
exit $failed
