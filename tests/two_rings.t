#!/bin/sh
# two_rings.t - rings that share forwards: each robot has the bytes that it has with its ring alone.
# usage: tests/two_rings.t [PROGRAM]
. "$(dirname "$0")/opening.sh"

run() { # run NAME PIPELINE ARGUMENTS...: NAME a and b see what that robot sees
    name=$1 pipeline=$2
    shift 2
    see=frames
    case $name in a | b) see=$name.frames ;; esac
    "$T" run "$pipeline" --root "$PWD" --random-weights 1 --size tiny -n 24 --threads 2 --inputs "$W/$see" \
        --format json "$@" >"$W/$name" 2>"$W/err" </dev/null
}

# Both rings, each with a depth of its own that changes, or one of them with the depths of its own.
cat >"$W/depths.lua" <<'LUA'
local rings
return policy { name = "depths", api = 1, version = 1, needs = { "depth" },
  setup = function(S, T) rings = T.rings end,
  plan = function(S, F, D)
    for i = 1, #rings do
      D:depth(rings[i], ({ 7, 4, 1 })[1 + (F.index // 5 + i) % 3])
    end
  end }
LUA
sed 's/ + i) % 3/ + 2) % 3/' "$W/depths.lua" >"$W/depths_b.lua" # of the second ring

# What the robots see: both, and each.
python3 - "$W" <<'PYTHON'
import json, random, sys
random.seed(3)
def picture():
    return [[[random.randrange(256) for _ in range(3)] for _ in range(28)] for _ in range(28)]
files = {side: open(f"{sys.argv[1]}/{side}frames", "w") for side in ("", "a.", "b.")}
for f in range(24):
    of = {side: {side[0] + "/observation/image": picture(), side[0] + "/prompt#ids": [7, 9, ord(side[0])]}
          for side in ("a.", "b.")}
    of[""] = of["a."] | of["b."]
    for side, frame in of.items():
        files[side].write(json.dumps(frame) + "\n")
PYTHON

alone() { # alone SIDE
    cat <<LUA
return extend("openvla_ring.lua", { name = "alone",
  robot  = without "robot", robots = { $1 = "robots/openvla_bridge.lua" },
  inputs = { image { name = "$1/observation/image", h = 224, w = 224 }, text { name = "$1/prompt", max_tokens = 64 },
             without "observation/image", without "prompt" },
  nodes = { prefill { name = "enter", reads = { "$1/observation/image", "$1/prompt" } } } })
LUA
}

cat >"$W/same.py" <<'PYTHON'
import json, sys
def read(path, node):
    out = []
    for line in open(path):
        f = json.loads(line)
        last = (f.get("actions") or {}).get(node)
        out += [(e["seen"], e["actions"]) for e in f.get("earlier", []) if e.get("node", node) == node]
        out += [last] if last else []
    return [x[1] if isinstance(x, tuple) else x for x in out]
a, b = read(sys.argv[1], sys.argv[2]), read(sys.argv[3], sys.argv[4])
assert len(a) > 8, "hardly any actions"
assert a == b, f"actions differ: {len(a)} and {len(b)}"
PYTHON

alone a >"$W/alone_a.lua"
alone b >"$W/alone_b.lua"
both=pipelines/graphs/g19_two_rings.lua
for policy in default "$W/depths.lua"; do
    second=$policy
    [ "$policy" = default ] || second=$W/depths_b.lua
    run both $both --policy "$policy" && run a "$W/alone_a.lua" --policy "$policy" &&
        python3 "$W/same.py" "$W/both" advance "$W/a" advance 2>>"$W/err"
    ok $? "the first robot, policy ${policy##*/}"
    run b "$W/alone_b.lua" --policy "$second" &&
        python3 "$W/same.py" "$W/both" advance2 "$W/b" advance 2>>"$W/err"
    ok $? "the second robot, policy ${policy##*/}"
    run interpreted $both --policy "$policy" --interpret &&
        python3 "$W/same.py" "$W/both" advance2 "$W/interpreted" advance2 2>>"$W/err"
    ok $? "as interpreted, policy ${policy##*/}"
done
for words in "resources.ring.shift=device_copy resources.ring2.shift=device_copy" \
    "resources.ring.pack=gather resources.ring2.pack=gather" "resources.ring2.pack=gather"; do
    set=
    for word in $words; do set="$set --set $word"; done
    run other $both --policy "$W/depths.lua" $set &&
        python3 "$W/same.py" "$W/both" advance2 "$W/other" advance2 2>>"$W/err" &&
        python3 "$W/same.py" "$W/both" advance "$W/other" advance 2>>"$W/err"
    ok $? "$words"
done
for nodes in advance "advance advance2"; do
    {
        echo 'return extend("graphs/g19_two_rings.lua", { name = "apart", nodes = {'
        for node in $nodes; do echo "decode { name = \"$node\", pack_with = without \"pack_with\" },"; done
        echo '} })'
    } >"$W/apart.lua"
    run apart "$W/apart.lua" --policy "$W/depths.lua" &&
        python3 "$W/same.py" "$W/both" advance2 "$W/apart" advance2 2>>"$W/err" &&
        python3 "$W/same.py" "$W/both" advance "$W/apart" advance 2>>"$W/err"
    ok $? "prefills are launches of their own in $nodes"
done
run both $both --policy default && python3 - "$W/both" <<'PYTHON' 2>>"$W/err"
import json, sys
for line in open(sys.argv[1]):
    f = json.loads(line)
    assert [l["node"] for l in f["plan"]["launches"]] == ["packed"], f["plan"]["launches"]
PYTHON
ok $? "one launch a frame for both"
echo "1..$n"
exit $failed
