#!/bin/sh
# guided.t - real-time chunking by guidance: a LeRobot folder with rtc_config gives the published actions; an earlier
# chunk that is empty, short or late pulls as it should; and what is refused. usage: tests/guided.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
G=tests/golden/smolvla/base_rtc I=tests/golden/smolvla/base_rtc/inputs.safetensors
cp -r tests/golden/smolvla/base/checkpoint "$W/arm" && chmod -R u+w "$W/arm"
F=$W/arm/pretrained_model
python3 tests/guided.py folder "$F" $G || exit 1
task=$(python3 -c "import json; print(json.load(open('$G/case.json'))['task'])")
left=$(python3 tests/guided.py rows $G)

# run FOLDER OPTION... : one frame of the case.
run() {
    from=$1
    shift
    "$T" run "$from" --dtype f32 --device cpu --tier ref --threads 1 --format json --noise "@$I#noise" -i "task=$task" \
        -i "observation.state=@$I#observation.state" -i "observation.images.top=@$I#image.observation.images.top" \
        -i "observation.images.wrist=@$I#image.observation.images.wrist" "$@" >"$W/out" 2>"$W/err"
}
run "$F" -i "prev_chunk_left_over=$left" -i "inference_delay=[2]" &&
    python3 tests/smolvla_pipeline.py --compare $G "$W/out" "$(grep -c clipped "$W/err")"
ok $? "a folder with rtc_config gives the actions of LeRobot's RTCProcessor"
python3 tests/guided.py chunk "$W/out" >"$W/guided"
"$T" init "$F" >"$W/arm.lua" && run "$W/arm.lua" -i "prev_chunk_left_over=$left" -i "inference_delay=[2]" &&
    python3 tests/guided.py chunk "$W/out" | cmp - "$W/guided" 2>>"$W/err"
ok $? "so does the pipeline that init writes"
run "$W/arm.lua" --interpret -i "prev_chunk_left_over=$left" -i "inference_delay=[2]" &&
    python3 tests/guided.py chunk "$W/out" | cmp - "$W/guided" 2>>"$W/err"
ok $? "compiled as interpreted"
sed 's/delay_input = "inference_delay"/delay = 2/; s/^    tensor { name = "inference_delay.*//' "$W/arm.lua" >"$W/delay.lua"
run "$W/delay.lua" -i "prev_chunk_left_over=$left" && python3 tests/guided.py chunk "$W/out" | cmp - "$W/guided" 2>>"$W/err"
ok $? "the delay may be the pipeline's"

# Bugs that were published: LeRobot's pull request 4454.
run tests/golden/smolvla/base/checkpoint && python3 tests/guided.py chunk "$W/out" >"$W/free"
status=$?
run "$F" && python3 tests/guided.py chunk "$W/out" | cmp - "$W/free" && run "$F" -i "prev_chunk_left_over=[]" -i "inference_delay=[5]" &&
    python3 tests/guided.py chunk "$W/out" | cmp - "$W/free" && [ $status -eq 0 ]
ok $? "a first chunk, and one whose earlier one is used up, are free: nothing is pulled to zeros"
run "$W/arm.lua" -i "prev_chunk_left_over=$(python3 tests/guided.py rows $G 3)" -i "inference_delay=[2]" &&
    python3 tests/guided.py chunk "$W/out" >"$W/short"
python3 - "$W/guided" "$W/short" "$W/free" "$left" <<'END'
import json, sys
guided, short, free = (json.load(open(p)) for p in sys.argv[1:4])
left = json.loads(sys.argv[4])
def away(a, b):
    return sum(abs(x - y) for x, y in zip(a, b))
for i in (0, 1):  # rows that are executed meanwhile: the new chunk goes on where the old one is
    assert away(guided[i], left[i]) < 0.25 * away(free[i], left[i]), (i, guided[i], left[i], free[i])
assert away(short[0], left[0]) < 0.25 * away(free[0], left[0])
for i in range(4, 10):  # rows beyond what is left are pulled by nothing but what they attend to
    assert away(short[i], [0] * 6) > 0.3 * away(free[i], [0] * 6), (i, short[i], free[i])
END
ok $? "rows that are executed meanwhile go on with the earlier chunk; those beyond it do not go to zero"
run "$W/arm.lua" -i "prev_chunk_left_over=$left" -i "inference_delay=[9]" && python3 tests/guided.py chunk "$W/out" >"$W/ref"
run "$W/arm.lua" -i "prev_chunk_left_over=$left" -i "inference_delay=[0]" --set nodes.act.guide.schedule=ones &&
    python3 tests/guided.py chunk "$W/out" | cmp - "$W/ref" 2>>"$W/err"
ok $? "a delay beyond the horizon is the horizon: ones pull as much as rows that are executed"

for change in max_guidance_weight=1 execution_horizon=4 schedule=linear schedule=zeros; do
    run "$W/arm.lua" -i "prev_chunk_left_over=$left" -i "inference_delay=[2]" --set "nodes.act.guide.$change" &&
        ! python3 tests/guided.py chunk "$W/out" | cmp -s - "$W/guided"
    ok $? "$change is another chunk"
done

: >"$W/served"
"$T" serve "$F" --port 0 --device cpu --threads 1 --late-ok >"$W/served" 2>"$W/err" &
server=$!
tries=0
while ! grep -q ' on ws://' "$W/served" && [ $tries -lt 600 ]; do sleep 0.1; tries=$((tries + 1)); done
port=$(sed -n 's|.* on ws://[^:]*:\([0-9]*\).*|\1|p' "$W/served")
python3 tests/guided.py ask "$port" $G >"$W/out" 2>>"$W/err"
ok $? "a client of serve sends what is left, and how many rows are executed meanwhile"
kill $server
wait $server 2>/dev/null

wrong() {
    text=$1 words=$2
    shift 2
    ! run "$@" && grep -q "$words" "$W/err"
    ok $? "$text"
}
wrong "a delay that is no number of rows" "inference_delay: 1.5 is no whole number" "$F" -i "inference_delay=[1.5]"
wrong "an earlier chunk of other columns" "prev_chunk_left_over: must be float\[d,6\] with d = 0 to 10" "$F" -i "prev_chunk_left_over=[[1,2]]"
wrong "more rows than a chunk has" "at most 10 rows" "$W/arm.lua" --set inputs.prev_chunk_left_over.shape='[11, 6]'
wrong "a schedule that is none" "zeros, ones, linear, exp" "$W/arm.lua" --set nodes.act.guide.schedule=cosine
wrong "an input that is none" "there is no input called" "$W/arm.lua" --set nodes.act.guide.previous=nothing
cp -r tests/golden/act/base/checkpoint "$W/act" && chmod -R u+w "$W/act" && config=$(find "$W/act" -name config.json | head -n 1) &&
    python3 -c "import json,sys; p=sys.argv[1]; c=json.load(open(p)); c['rtc_config']={'enabled': True}; json.dump(c, open(p, 'w'))" "$config"
"$T" check "$W/act" >"$W/out" 2>&1
[ $? -ne 0 ] && grep -q "only chunks that are denoised are guided" "$W/out"
ok $? "a model that does not denoise has no guide"
echo "1..$n"
exit $failed
