#!/bin/sh
# bench_keep.t - experiments keep from the outside: what it writes, and what must hold in any run of
# it. Sizes are tiny: no time that is measured here means anything.
. "$(dirname "$0")/opening.sh"
experiments=${T%tectum}experiments
# count PATTERN N TEXT: so many lines of the report hold it.
count() {
    [ "$(grep -c "$1" "$json")" = "$2" ]; ok $? "$3"
}
out=$W/out json=$W/out/suite.json
"$experiments" keep --random-weights 1 --size tiny --quick --frames 1 --threads 1 -o "$out" \
    >"$W/log" 2>&1
ok $? "it ends well"
cat "$W/log" >&2
for experiment in methods segments ratio blocks links; do
    count "\"experiment\": \"$experiment\"" 1 "one cell of $experiment"
done
for method in full prefix reuse cacheblend epic keep 'keep, code' 'keep, no hops' 'keep, lift' \
    'keep, no groups' 'keep, blocks' 'cacheblend, stored blocks' "cacheblend, code's mask" separate next balanced bounded; do
    grep -q "\"method\": \"$method\"" "$json"; ok $? "there is a row of $method"
done
! grep -q '"same_bytes": false' "$json" && grep -q '"same_bytes": true' "$json"
ok $? "the same rows alone say the same, byte for byte"
# Of the full rows, each first in its cell: everything is computed, nothing differs from itself.
awk '/"method":/ { full = /"full"/; fulls += full }
    full && /"rows_share"/ { bad += $2 + 0 != 1 }
    full && /"agree"/ { bad += $2 + 0 != 1 }
    full && /"skill"/ { bad += $2 + 0 != 1 }
    full && /"kl"/ { bad += $2 + 0 > 1e-9 }
    !full && /"rows_share"/ { bad += $2 + 0 >= 1 || $2 + 0 <= 0 }
    END { exit bad || fulls != 5 }' "$json"
ok $? "full rows compute everything, others less"
# All four overlaps choose the same rows and place the same bytes.
awk '/"experiment":/ { links = /"links"/ }
    /"method":/ { over = /"(separate|next|balanced|bounded)"/ }
    links && over && /"rows_share"/ { share[$2]++ }
    links && over && /"kl"/ { kl[$2]++ }
    links && over && /"placed_bytes"/ { bytes[$2]++ }
    END { for (s in share) a++; for (b in bytes) c++; for (k in kl) d++; exit a != 1 || c != 1 || d != 1 }' "$json"
ok $? "how loads overlap changes nothing that is computed"
for field in machine commit command p50 p99 max ttft_ms refresh_ms prefill_ms wait_ms choose_ms score_ms \
    rows_share prefill_speedup of_bound over_bare agree skill kl refreshed_tokens placed_bytes retrieve_ms \
    changes_segment_step compute_ms loaded_bytes served_ms charged_ms charged_least_ms needed_tokens; do
    grep -q "\"$field\"" "$json"; ok $? "the report has $field"
done
for chart in fig3 fig7 fig9 fig10; do
    head -c 4 "$out/$chart.svg" | grep -q '<svg' && tail -n 1 "$out/$chart.svg" | grep -q '</svg>'
    ok $? "$chart is drawn"
done
for table in 'Table 1: full over KEEP' 'Table 3: without multi-hop' 'Fig 5' 'Fig 7' 'of bound' 'Charged alike'; do
    grep -q "$table" "$out/keep.md"; ok $? "the tables have $table"
done
# Of blocks no more is needed than was computed, of segments alone all of it; what is charged contains what is served.
awk -F'[:,]' '/"method":/ { blocks = /blocks"|stored|"(32|64|128|256)"/ }
    /"needed_tokens"/ { needed = $2 + 0 }
    /"refreshed_tokens"/ { n++; bad += needed > $2 + 0 || (!blocks && needed != $2 + 0) }
    END { exit bad || n < 20 }' "$json"
ok $? "tokens that had to be computed are counted"
"$experiments" keep --random-weights 1 --size tiny --quick --frames 1 --threads 1 --set experiment=links \
    --set model.layers=5 -o "$W/deep" >"$W/log" 2>&1 && grep -q '"layers": 5' "$W/deep/suite.json"
ok $? "a random model of as many layers as are asked for"
[ ! -e "$out/keep.store" ]; ok $? "the store of a link is removed"
"$experiments" keep --size tiny >/dev/null 2>&1
[ $? = 2 ]; ok $? "without --out it is refused"
"$experiments" keep --random-weights 1 --size tiny --quick --set experiment=all -o "$out" \
    >"$W/log" 2>&1
[ $? = 2 ] && grep -q 'experiment=methods' "$W/log"; ok $? "an unknown word is refused with what is known"
"$experiments" keep --weights pipelines/checkpoints/planner --quick --threads 1 -o "$out" \
    >"$W/log" 2>&1
ok $? "a trained planner answers questions"
awk '/"method":/ { full = /"full"/; one = /"(1.0|cacheblend 1.0)"/ }
    /"right"/ && full { fulls++; right += $2 }
    /"kl"/ && one { ones++; bad += $2 + 0 > 1e-9 }
    END { exit bad || fulls != 5 || right < 4.5 || ones != 5 }' "$json"
ok $? "computing everything is right, and a share of 1 is the same"
head -c 4 "$out/answers.svg" | grep -q '<svg' && grep -q '^| lift | 0.4 |' "$out/keep.md"
ok $? "its answers are drawn and listed"
"$experiments" keep --weights pipelines/checkpoints/metaworld --quick -o "$out" >"$W/log" 2>&1
[ $? != 0 ]; ok $? "a checkpoint without questions is refused"
server=
for name in valkey-server redis-server; do
    [ -n "$server" ] || ! command -v $name >/dev/null || server=$name
done
if [ -n "$server" ]; then
    "$server" --port 0 --unixsocket "$W/server" --save "" --dir "$W" >"$W/server.log" 2>&1 &
    pid=$!
    for _ in 1 2 3 4 5 6 7 8 9 10; do [ -S "$W/server" ] || sleep 0.2; done
    "$experiments" keep --random-weights 1 --size tiny --quick --frames 1 --threads 1 \
        --set experiment=links --set memory.remote="unix:$W/server" -o "$out" >"$W/log" 2>&1
    ok $? "KV on a server alone"
    kill $pid
    wait $pid 2>/dev/null
    count '"link": "server"' 1 "has a cell of its own"
    ! grep -q '"same_bytes": false' "$json"; ok $? "which says the same, byte for byte"
else
    n=$((n + 1)); echo "ok $n - KV on a server alone # SKIP no valkey-server or redis-server"
fi
echo "1..$n"
exit $failed
