#!/bin/sh
# where.t - the devices that models name: where there is no GPU, and with one, where each model gives
# the bytes that it gives in a run on that device alone.
# usage: tests/where.t [PROGRAM]; a program with CUDA, or with its emulator, does the second half, too
. "$(dirname "$0")/opening.sh"
two=pipelines/graphs/g22_two_devices.lua

"$T" check $two >"$W/out" 2>"$W/err"
ok $? "a pipeline whose models name devices"
run() {
    name=$1
    shift
    "$T" run --random-weights 1 --size tiny --random-inputs 1 -n 3 --policy chaos --drain --format json "$@" \
        >"$W/$name" 2>"$W/err" </dev/null
}
if "$T" run --device cuda --random-weights 1 --size tiny --random-inputs 1 -n 1 pipelines/planner_and_arm.lua >/dev/null 2>&1; then
    run both $two --device cuda && run gpu pipelines/planner_and_arm.lua --device cuda &&
        run cpu pipelines/planner_and_arm.lua --device cpu && python3 - "$W" <<'PYTHON' 2>"$W/err"
import json, sys
def read(name):
    frames = [json.loads(line) for line in open(f"{sys.argv[1]}/{name}")]
    texts = {}
    for f in frames:
        for t in (f["text"] or {}).get("plan", []):
            texts.setdefault(t["request"], []).extend(t["tokens"] or [])
    return [f["actions"]["act"] for f in frames[:3]], texts
both, gpu, cpu = read("both"), read("gpu"), read("cpu")
assert both[0] == gpu[0] and len(both[0]) == 3, "the arm's actions are not those of the GPU"
assert both[1] == cpu[1] and any(both[1].values()), "the planner's texts are not those of the CPU"
PYTHON
    ok $? "the arm is on the GPU, the planner on the CPU"
    run there $two --device cpu && python3 - "$W" <<'PYTHON' 2>"$W/err"
import json, sys
def actions(name):
    return [json.loads(line)["actions"] for line in open(f"{sys.argv[1]}/{name}")]
assert actions("there") == actions("both")
PYTHON
    ok $? "whatever device the run has"
else
    grep -q "W109.*'arm' goes to cpu, not to the first of 'cuda:0,cpu'" "$W/out"
    ok $? "a device that is not here is passed over, and check says so"
    "$T" check $two --set models.arm.where=cuda:7 >"$W/out" 2>"$W/err"
    [ $? -ne 0 ] && grep -qE "model 'arm' goes to 'cuda:7': (this build has no cuda|no CUDA device)" "$W/out"
    ok $? "one that is named alone must be here"
    run same pipelines/planner_and_arm.lua && run named $two && python3 - "$W" <<'PYTHON' 2>"$W/err"
import json, sys
def actions(name):
    return [json.loads(line)["actions"] for line in open(f"{sys.argv[1]}/{name}")]
assert actions("same") == actions("named")
PYTHON
    ok $? "the run's own device by its name is the run's"
fi
"$T" check $two --set models.arm.where=tpu >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "error\[E011\].*'tpu' is no list of up to 4 devices" "$W/out"
ok $? "other names are refused"
echo "1..$n"
exit $failed
