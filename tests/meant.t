#!/bin/sh
# meant.t - a word that nothing is called: every one is told at its place, with what was probably meant, and an
# option that another verb has with the verbs that have it. usage: tests/meant.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
mkdir -p "$W/robots" && cp pipelines/robots/metaworld.lua "$W/robots/" && cp pipelines/demo_metaworld.lua "$W/base.lua"

# says SED WORDS...: a base that is changed so is wrong, and the message has each of the words
says() {
    change=$1
    shift
    sed "$change" "$W/base.lua" >"$W/x.lua"
    ! cmp -s "$W/base.lua" "$W/x.lua" && ! "$T" check "$W/x.lua" >"$W/out" 2>&1
    good=$?
    for words; do grep -qF -- "$words" "$W/out" || good=1; done
    ok $good "$change"
}
# refuses WORDS ARGUMENTS...: exit code 2 and one line with the words
refuses() {
    words=$1
    shift
    "$T" "$@" >"$W/out" 2>"$W/err" </dev/null
    [ $? -eq 2 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -qF -- "$words" "$W/err"
    ok $? "$1: $words"
}

says 's/every(1)/on_change("promt")/' "E021" "help: did you mean 'prompt'?"
says 's/every(1)/on_change("gaol")/' "takes its prefix, 'obs', or what its prefill reads: 'observation/image', "
says 's/writes = "obs" }/writes = "obs", spawn = on_change("promtp") }/' "E024" "help: did you mean 'prompt'?"
says 's/writes = "obs" }/writes = "obs", spawn = on_change("gaol") }/' "it reads 'observation/image', " "'prompt'"
says 's/stream "narration"/stream { name = "narration", defualt = "x" }/' "help: did you mean 'default'?"
says 's/stream "narration"/stream "nar ration"/' 'is stream "nar ration"'
says 's/metaworld.lua/metaword.lua/' "there is no file 'robots/metaword.lua'" "did you mean 'robots/metaworld.lua'?"
# A folder that a link leads to is outside: it is not read, and nothing in it is meant.
away="$W/away"
mkdir -p "$away" "$W/in/robots" && cp pipelines/robots/metaworld.lua "$away/" && ln -s "$away" "$W/in/robots/out" &&
    ln -s "$away/metaworld.lua" "$W/in/robots/linked.lua"
outside() { # outside NAME WORDS: the message has the words, and suggests nothing
    sed "s|robots/metaworld.lua|$1|" "$W/base.lua" >"$W/in/x.lua" && ! "$T" check "$W/in/x.lua" >"$W/out" 2>&1 &&
        grep -qF "$2" "$W/out" && ! grep -q "did you mean" "$W/out"
    ok $? "$1: $2"
}
outside robots/out/metaworld.lua "'robots/out/metaworld.lua' is a link, or lies behind one, that leads out of the folder $W/in"
outside robots/out/metaword.lua "there is no file 'robots/out/metaword.lua' in $W/in"
outside robots/linkd.lua "there is no file 'robots/linkd.lua' in $W/in"
python3 -S - "$W/in/robots" <<'PYTHON'
import sys
for name in [f"n{i}" for i in range(600)] + ["robtz.lua", "robta.lua", "robtm.lua"]:
    open(sys.argv[1] + "/" + name, "w").close()
PYTHON
sed "s|robots/metaworld.lua|robots/robt.lua|" "$W/base.lua" >"$W/in/x.lua"
! "$T" check "$W/in/x.lua" >"$W/out" 2>&1 && grep -q "did you mean 'robots/robta.lua'?" "$W/out"
ok $? "of many names equally near the first by the alphabet"
says 's/checkpoints.metaworld/checkpoints\/gone/' "help: the checkpoint 'pipelines/checkpoints/gone' is not here"
says 's/every(1)/every(0)/' "is every(0)" "n counts frames"
says 's/every(1)/every(1.5)/' "is every(1.5)"
says 's/name = "oxygen"/name = "oxigen"/' "did you mean 'oxygen'" "x.lua:38:26"
says 's/params = { k = 4 }/params = { k = 99, kk = 2, j = "a" }/' "'k' of policy 'oxygen' is 99" "x.lua:38:51" \
    "no parameter 'kk', did you mean 'k'" "x.lua:38:60" "x.lua:38:67"
grep -q "no parameter 'j'$" "$W/out"
ok $? "nothing is near 'j'"
says 's/params = { k = 4 }/params = { k = "a" }/' "parameter 'k' of policy 'oxygen' is not a number" "x.lua:38:51"
printf 'return extend("base.lua", { policy = use { params = { k = 99 } }, inputs = { without "promt" },
  nodes = { prefill { name = "see", raeds = without "raeds" } } })\n' >"$W/over.lua"
! "$T" check "$W/over.lua" >"$W/out" 2>&1 && grep -q "over.lua:1:[0-9]*$" "$W/out" &&
    grep -q "did you mean 'prompt'" "$W/out" && grep -q "did you mean 'reads'" "$W/out"
ok $? "what an overlay leaves out is meant by its name"
sed -i 's/, inputs = .*/ })/; 2d' "$W/over.lua"
! "$T" check "$W/over.lua" >"$W/out" 2>&1 && grep -q -- "--> $W/over.lua:1:59" "$W/out"
ok $? "a parameter is told where it is written, not in the base"
"$T" expand pipelines/demo_metaworld.lua | sed 's/"kind": "prefill"/"kind": "prefil"/' >"$W/x.json"
! "$T" check "$W/x.json" >"$W/out" 2>&1 && grep -q "did you mean 'prefill'" "$W/out"
ok $? "a kind of the JSON form"

# Capitals are no other word, and nothing near is said where nothing is.
says 's/arch = "pi05"/arch = "pi05", quantize = "INT8"/' "E011" "help: did you mean 'int8'?"
says 's/arch = "pi05"/arch = "pi05", quantize = "fp16"/' "is 'fp16'"
! grep -q "did you mean" "$W/out"; ok $? "nothing is near 'fp16'"
refuses "no machine 'H100'; did you mean 'h100'? there are: h200, h100, 4090, orin, thor, and files that end with .json" \
    graph pipelines/demo_metaworld.lua --roofline H100
refuses "no code is named 'e011'; did you mean 'E011'? they are E001" check --explain e011

# Files that another file is made of.
for wrong in "extend({}, {})" 'extend("base.lua")' "extend()" "include(5)"; do
    echo "return $wrong" >"$W/x.lua"
    ! "$T" check "$W/x.lua" >"$W/out" 2>&1 && grep -q "^error.E011.: ${wrong%%(*} takes a " "$W/out" &&
        grep -q "x.lua:1:8$" "$W/out" && [ "$(grep -c "^error" "$W/out")" -eq 1 ]
    ok $? "$wrong: what it takes, at its place"
done
for wrong in 'extend("bas.lua", {})' 'include("bas.lua")'; do
    echo "return $wrong" >"$W/x.lua"
    ! "$T" check "$W/x.lua" >"$W/out" 2>&1 && grep -q "^error.E021.: there is no file 'bas.lua' in .*did you mean 'base.lua'?" "$W/out" &&
        grep -q "x.lua:1:8$" "$W/out" && [ "$(grep -c "^error" "$W/out")" -eq 1 ]
    ok $? "$wrong: the file that was meant, at its place"
done

# The place of --set is that of the word that is wrong, wherever in the path it stands.
marks() { # marks COLUMN MARK PATH=VALUE
    ! "$T" check pipelines/demo_metaworld.lua --set "$3" >"$W/out" 2>&1 && grep -q -- "--> --set:1:$1\$" "$W/out" &&
        [ "$(grep -E '^ *\| *\^+$' "$W/out" | tr -d ' |')" = "$2" ]
    ok $? "$3: marked at $1"
}
marks 7 ^^^ frame.foo.bar=1
marks 7 ^^^ frame.foo=bar
marks 20 ^^ nodes.act.deadline.no.more=1
marks 11 ^^^^^^^^^^ nodes.act.wrongfield.y=1
marks 11 ^^^^^ nodes.act.steps.y=1

refuses "is 99, allowed is 1 to 32; policy 'oxygen' has no parameter 'kk', did you mean 'k'?" \
    run pipelines/demo_metaworld.lua --device cpu --random-inputs 1 --policy oxygen --param k=99 --param kk=3
# Where the line is full it says that there is more, whole, at whatever length.
name=zz good=0
for length in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    name=z$name
    ! "$T" simulate pipelines/demo_metaworld.lua --launch-ms 1 -n 1 --policy oxygen --param $name=1 --param a$name=1 \
        --param b$name=1 --param c$name=1 --param d$name=1 --param e$name=1 --param f$name=1 --param g$name=1 \
        --param h$name=1 --param i$name=1 >"$W/out" 2>"$W/err" && grep -qE "'; and more$" "$W/err" || good=1
done
ok $good "and more"
# A wrong parameter on the command line is usage, whatever the verb; a wrong one of the file is the file's.
for verb in check "run --device cpu --random-inputs 1 -n 1" "simulate --launch-ms 1 -n 1" graph "bench -n 1 --device cpu"; do
    refuses "did you mean 'k'?" $verb pipelines/demo_metaworld.lua --param kk=3
    refuses "is 99, allowed is 1 to 32" $verb pipelines/demo_metaworld.lua --param k=99
done
"$T" simulate pipelines/demo_metaworld.lua --launch-ms 1 -n 1 --set policy.params.kk=3 --param k=4 >"$W/out" 2>"$W/err"
[ $? -eq 3 ] && grep -q "no parameter 'kk'" "$W/err"
ok $? "of the file's, also beside a right one of the command line"
# --set policy.name leaves the other policy's parameters where they are.
kept="--set policy.name keeps the parameters of the file, --policy isolated does not"
! "$T" check pipelines/demo_metaworld.lua --set policy.name=isolated >"$W/out" 2>&1 && grep -qF "help: $kept" "$W/out"
ok $? "check says which words would do"
"$T" simulate pipelines/demo_metaworld.lua --launch-ms 1 -n 1 --set policy.name=isolated >"$W/out" 2>"$W/err"
[ $? -eq 3 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -qF "policy 'isolated' has no parameter 'k'; $kept" "$W/err"
ok $? "so do verbs that run"
"$T" simulate pipelines/demo_metaworld.lua --launch-ms 1 -n 1 --set policy.name=batch_only >"$W/out" 2>"$W/err"
ok $? "one that has them takes them"
refuses "no policy here has it; did you mean 'k'?" bench pipelines/demo_metaworld.lua --policy oxygen --param kk=3
refuses "did you mean 'k'?" bench pipelines/demo_metaworld.lua --policy oxygen --sweep kk=3
refuses "--policy has no meaning here; it is an option of bench, check, graph" profile --policy fill x.lua
refuses "--seed has no meaning here; it is an option of bench, check, " explain --seed 1
refuses "--timeline has no meaning here; it is an option of record and run" bench --timeline x.svg x.lua
refuses "--speed has no meaning here; it is an option of replay" bench --speed 2 x.lua
refuses "--dtype has no meaning here; it is an option of bench, demo" graph --dtype bf16 x.lua
refuses "--frame has no meaning here; it is an option of explain" run --frame 3 x.lua
refuses "did you mean '--frames'?" run --farmes 3 x.lua
refuses "--seed, --spin-us, --patience-ms: need --accuracy" check --seed 1 pipelines/demo_metaworld.lua
refuses "--policy, --param: of a picture" graph --commands --policy fill pipelines/demo_metaworld.lua

sed 's/^    local k = F.params.k/    F.cost("decod", 1)\n&/' policies/oxygen.lua >"$W/costly.lua"
"$T" simulate pipelines/demo_metaworld.lua --policy "$W/costly.lua" --launch-ms 1 -n 4 >"$W/out" 2>"$W/err"
grep -q "no cost is known for 'decod', did you mean 'decode'" "$W/err"
ok $? "F.cost: a name that nothing costs"

# Options that every verb with a use for them takes.
"$T" graph --policy fill -T text pipelines/demo_metaworld.lua 2>"$W/err" | grep -q "policy fill"
ok $? "graph --policy: the picture names it"
! "$T" graph --policy fill --param kk=3 pipelines/demo_metaworld.lua >"$W/out" 2>"$W/err" && grep -q "did you mean" "$W/err"
ok $? "which must fit the pipeline"
for seed in 1 2; do
    "$T" check --accuracy --seed $seed -n 1 --threads 1 pipelines/demo_metaworld.lua >"$W/seed$seed" 2>"$W/err"
done
! cmp -s "$W/seed1" "$W/seed2" && grep -q "^act: 1 chunks" "$W/seed1"
ok $? "check --accuracy --seed: the noise is another"
printf '{"schema": 1, "unit": "us", "device": "cpu", "tier": "%s", "threads": 1, "pipeline": "demo_metaworld", "variants": [
 {"node": "see", "point": {}, "n": 9, "min": 1, "p50": 1, "p99": 1, "p999": 1, "max": 1},
 {"node": "act", "point": {}, "n": 9, "min": 1, "p50": 1, "p99": 1, "p999": 1, "max": 1},
 {"node": "talk", "point": {"batch": 1}, "n": 9, "min": 1, "p50": 1, "p99": 1, "p999": 1, "max": 1}]}\n' other >"$W/x.costs"
notes() { # notes WORDS ARGUMENTS...: what a simulation on these costs says of its device; none: nothing
    words=$1
    shift
    "$T" simulate pipelines/demo_metaworld.lua --costs "$W/x.costs" -n 3 "$@" >"$W/out" 2>"$W/err" &&
        if [ -n "$words" ]; then grep -qF -- "$words" "$W/err"; else [ ! -s "$W/err" ]; fi
    ok $? "simulate $*: ${words:-nothing to say}"
}
notes ""
sed -i '/"act"/s/"n": 9,/"n": 9, "steps": 10,/' "$W/x.costs"
notes "'act' was measured with 10 steps and has 300 here: measure it again" --set nodes.act.steps=300
notes "" --set nodes.act.steps=10
notes "" --threads 1
notes "measured with 1 thread, used for 2" --threads 2
notes "measured with tier other, used for ref" --tier ref
notes "measured with tier other, used for amx" --tier amx
notes "" --device cpu
notes "measured on device cpu, used for cuda" --device cuda:1 --tier ref
sed -i 's/"cpu", "tier": "other"/"cuda", "tier": "sm_90"/' "$W/x.costs"
notes "" --device cuda --tier ref
notes "measured on device cuda, used for cpu" --device cpu
notes "" --threads 2
notes "" --tier ref
refuses "--device: 'cudda:1' is none of cpu, cuda, cuda:N; did you mean 'cuda'?" simulate pipelines/demo_metaworld.lua \
    --costs "$W/x.costs" --device cudda:1
refuses "--device: 'gpu' is none of cpu, cuda, cuda:N; did you mean 'cuda'?" run pipelines/demo_metaworld.lua --device gpu
refuses "did you mean 'avx2'?" simulate pipelines/demo_metaworld.lua --launch-ms 1 --tier avx3
"$T" policy check policies/fill.lua --pipeline pipelines/demo_metaworld.lua --costs "$W/x.costs" -n 100 --device cuda \
    >"$W/out" 2>"$W/err"
[ ! -s "$W/err" ] && grep -q "checks, 0 not ok" "$W/out" && "$T" policy check policies/fill.lua --pipeline pipelines/demo_metaworld.lua \
    --costs "$W/x.costs" -n 100 --device cpu 2>&1 >"$W/out" | grep -q "measured on device cuda, used for cpu"
ok $? "policy check, too"

# What nobody would read is refused.
for option in --spin-us --patience-ms; do
    refuses "$option has no meaning here; it is an option of bench, check" simulate pipelines/demo_metaworld.lua --launch-ms 1 $option 5
    refuses "$option has no meaning here" policy test tests/policies/edf.lua $option 5
    for verb in graph explain pack; do
        refuses "$option has no meaning here" $verb pipelines/demo_metaworld.lua $option 5
    done
done
for option in "--adapter a" "--embodiment a" "--policy fill" "--device cpu"; do
    refuses "policy test takes files and --format" policy test tests/policies/edf.lua $option
done
refuses "\`tectum profile FILE -o FILE.costs\` measures" policy check edf
refuses "localhost:8000: a URL like ws://localhost:8000 is wanted, wss:// for TLS" probe localhost:8000
refuses "http://robot: a URL like ws://robot is wanted" probe http://robot
refuses "--out or --weights-cache" pack pipelines/demo_metaworld.lua -o "$W/packed" --weights-cache auto
refuses "takes one policy, there are 2" policy check policies/edf.lua --policy fill --pipeline x.lua --costs x.costs
echo "1..$n"
exit $failed
