# shellcheck shell=sh disable=SC2154
# benches.sh - the parts `bench` and `peers` of gpu_check.sh, which reads this file: what is run, and what
# it says of the goals G1 to G13.

# --- benches ----------------------------------------------------------------------------------

# value NAME PATH: from the report of a bench.
value() {
    awk -F '\t' -v path="$2" '$1 == path { print $2 ~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/ ? sprintf("%.6g", $2) : $2; exit }' \
        "$work/$1.flat" 2>/dev/null
}

# ms NAME PATH: microseconds as milliseconds; `-` when there is none.
ms() { value "$1" "$2" | awk '{ printf "%.3f", $1 / 1000; n = 1 } END { if (!n) printf "-" }'; }

# ratio A B: A / B; `-` when one is missing.
ratio() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN { if (a > 0 && b > 0) printf "%.3f", a / b; else printf "-" }'; }

# line GOAL TEXT...: a line of the report's list.
line() {
    goal=$1
    shift
    echo "# $goal: $*"
    printf '%s\t%s\n' "$goal" "$*" >>"$work/lines"
}

# bench NAME SECONDS FILE ARGUMENTS...: one run of `tectum bench`; its rows go to the report.
bench() {
    b_name=$1 b_seconds=$2
    shift 2
    if attempt bench "$b_name" "$b_seconds" "$program" tectum bench "$@" --device "$device" --format json \
        --random-weights 1 --size "$size" --dtype bf16 ${cpu:+--threads 1}; then
        awk -f tools/gpu/flatten.awk "$work/$b_name.out" >"$work/$b_name.flat"
        echo "$b_name" >>"$work/benches"
        record bench "$b_name" ok "$a_seconds" "p50 $(ms "$b_name" rows.0.frame_us.p50) ms, p99 $(ms \
            "$b_name" rows.0.frame_us.p99), max $(ms "$b_name" rows.0.frame_us.max)"
        return 0
    fi
    record bench "$b_name" failed "$a_seconds" "$a_why"
    return 1
}

# paper NAME SECONDS OPTIONS...: a paper's experiments, in $work/NAME.flat.
paper() {
    p_name=$1 p_seconds=$2
    shift 2
    if attempt bench "$p_name" "$p_seconds" "$program" experiments "$p_name" --device "$device" --random-weights 1 \
        --size "$size" "$@" ${few:+--quick --frames 2} ${cpu:+--threads 1} -o "$work/$p_name" &&
        awk -f tools/gpu/flatten.awk "$work/$p_name/suite.json" >"$work/$p_name.flat"; then
        record bench "$p_name" ok "$a_seconds" "$(grep -c '^cells[.][0-9]*[.]rows[.][0-9]*[.]\(variant\|method\)' \
            "$work/$p_name.flat") rows; in the logs"
    else record bench "$p_name" failed "$a_seconds" "$a_why"; fi
}

# row NAME CELL FIELD WORD: the index of a cell's row whose field is that word.
row() { awk -F '\t' -v at="cells.$2.rows." -v field=".$3" -v word="$4" \
    'index($1, at) == 1 && $2 == word && $1 ~ field "$" { split($1, part, "."); print part[4]; exit }' "$work/$1.flat" 2>/dev/null; }

# frames OF_FULL: that many, of tiny models a few.
frames() { if [ -n "$few" ]; then echo 4; else echo "$1"; fi; }

# As many back-to-back frames as fit into 20 s, at most 5000, from the median of another bench.
many_frames() {
    value pi0_views1 rows.0.frame_us.p50 | awk -v few="$(frames 0)" \
        '{ n = 20e6 * '"$minutes"' / 8 / (1.6 * $1) } END { n = n > 5000 ? 5000 : n < 100 ? 100 : int(n); print (few > 0) ? few : n }'
}

layers() {
    if [ -n "$cpu" ]; then
        record bench "$1" skipped 0 "layers are timed on a GPU"
        return
    fi
    if attempt bench "$1" 25 "$program" kernels --tier cuda --layers ${2:+--peak "$2"}; then
        sed -n 's/^# \({.*}\)$/\1/p' "$work/$1.out" >"$work/$1.lines"
        record bench "$1" ok "$a_seconds" "$(grep -c '"us"' "$work/$1.lines") layers"
        sed -n '/^# most time/,$p' "$work/$1.out" | grep '^#' | tee "$work/worst"
    else record bench "$1" failed "$a_seconds" "$a_why"; fi
}

run_bench() {
    for views in 1 3; do
        bench pi0_views$views 60 pipelines/suite/pi0_views$views.lua --frames "$(frames 100)" --rounds 2 \
            --warmup "$(frames 20)"
    done
    bench pi0_views2 110 pipelines/suite/pi0_views2.lua --frames "$(many_frames)" --rounds 1 \
        --warmup "$(frames 50)"
    bench oxygen 60 pipelines/pi05_libero.lua --policy oxygen,isolated --param k=5 --rounds 2 \
        --set 'resources.chunk.shape=[10,32]' --frames "$(frames 40)" --warmup 8
    bench beside 60 pipelines/pi05_libero_parallel.lua --rounds 2 --frames "$(frames 60)" --warmup 8 \
        --policy tools/gpu/alone.lua,tools/gpu/concurrent.lua,oxygen
    bench one_text 50 pipelines/suite/one_text.lua --policy oxygen --sweep k=8,1 --rounds 1 --warmup "$(frames 40)" \
        --frames "$(if [ -n "$few" ]; then echo 48; else echo 96; fi)"
    paper actionflow 150
    # shellcheck disable=SC2046
    paper keep 60 --set experiment=methods $([ "$size" != full ] || echo --set model.arch=qwen2_1b5)
    layers layers
    judge
}

judge() {
    for views in 1 2 3; do
        v=pi0_views$views
        line G1 "pi0, $views views: p50 $(ms $v rows.0.frame_us.p50) ms, p99 $(ms $v rows.0.frame_us.p99)," \
            "max $(ms $v rows.0.frame_us.max)"
        line G3 "pi0, $views views: action node p50 $(ms $v rows.0.nodes.act.p50) ms, prefill node" \
            "$(ms $v rows.0.nodes.see.p50)"
    done
    predicted
    line G4 "pi05, N 30, k 5: isolated / oxygen = $(value oxygen bound.ratio), of the bound" \
        "$(value oxygen bound.bound) that is $(value oxygen bound.of_bound)"
    line G5 "action p99 with six texts beside / alone = $(ratio "$(value beside rows.1.action_us.p99)" \
        "$(value beside rows.0.action_us.p99)"), after the actions (oxygen) / alone = $(ratio \
        "$(value beside rows.2.action_us.p99)" "$(value beside rows.0.action_us.p99)")"
    papers
    copy=$(sed -n 's/.*"copy_gb_s": \([0-9.]*\).*/\1/p' "$work/layers.lines" 2>/dev/null)
    step=$(value one_text memory.step1_bytes_s)
    line G9 "a decoding step at batch 1 reads $(ratio "$step" 1e9) GB/s;" \
        "share of a copy's ${copy:--} GB/s: $(ratio "$step" "$(awk -v c="${copy:-0}" 'BEGIN { print c * 1e9 }')")"
    line G10 "eight launches of one step / one launch of eight = $(ratio "$(value one_text rows.1.nodes.talk.p50 |
        awk '{ print 8 * $1 }')" "$(value one_text rows.0.nodes.talk.p50)")"
    line G11 "host p50 $(value pi0_views2 rows.0.host_us.p50) us, p99 $(value pi0_views2 rows.0.host_us.p99);" \
        "with a policy p99 $(value oxygen rows.0.host_us.p99); launches a frame" \
        "$(value pi0_views2 rows.0.launches.mean), with language $(value oxygen rows.0.launches.mean);" \
        "allocations $(value pi0_views2 rows.0.allocations)"
    line G12 "p99 / p50 = $(ratio "$(value pi0_views2 rows.0.frame_us.p99)" "$(value pi0_views2 \
        rows.0.frame_us.p50)") over $(value pi0_views2 rows.0.frames) frames"
    same
}

# Of rings, and of memories: the cells and rows that the goals are about.
papers() {
    cell=0
    while k=$(value actionflow "cells.$cell.K") && [ -n "$k" ]; do
        at=cells.$cell.rows.$(row actionflow $cell variant rotate)
        line G6 "K = $k, a prompt of $(value actionflow "cells.$cell.prompt_tokens"): one action after the other / ring =" \
            "$(value actionflow "$at.speedup"), of the bound $(value actionflow "cells.$cell.bound") that is" \
            "$(value actionflow "$at.of_bound")"
        line G7 "K = $k: gathered keys / packed = $(value actionflow "cells.$cell.gather_over_packed")"
        cell=$((cell + 1))
    done
    at=cells.0.rows.$(row keep 0 method keep) reuse=cells.0.rows.$(row keep 0 method reuse)
    line G8 "the first token of $(value keep cells.0.segments) segments: all computed / KEEP =" \
        "$(ratio "$(value keep cells.0.rows.0.ttft_ms.p50)" "$(value keep "$at.ttft_ms.p50")"), KEEP / all reused =" \
        "$(ratio "$(value keep "$at.ttft_ms.p50")" "$(value keep "$reuse.ttft_ms.p50")"); waited for KV" \
        "$(value keep "$at.wait_ms.p50") ms of $(value keep "$at.ttft_ms.p50")"
}

# Every turn of every row of a bench has the same inputs: the actions must be the same bytes.
same() {
    for name in oxygen beside pi0_views1 pi0_views3; do
        [ -s "$work/$name.flat" ] || continue
        hashes=$(awk -F '\t' '$1 ~ /repeat.actions$/ { print $2 }' "$work/$name.flat" | sort -u | wc -l)
        if [ "$hashes" -eq 1 ] && ! grep -q 'repeat.equal.false' "$work/$name.flat"; then
            line G13 "$name: the same actions, byte for byte, in every turn and row"
        else
            line G13 "$name: ACTIONS DIFFER between turns or rows"
            record bench "same_$name" failed 0 "actions differ between turns or rows"
        fi
    done
}

# What the roofline of the calls says of this GPU, where peaks.def knows one like it.
predicted() {
    case $gpu in
    *H200*) machine=h200 ;;
    *H100*) machine=h100 ;;
    *4090*) machine=4090 ;;
    *Orin*) machine=orin ;;
    *Thor*) machine=thor ;;
    *) line G2 "\`tectum graph --roofline\` knows no peaks of $gpu"; return ;;
    esac
    for views in 1 2 3; do
        attempt bench "roofline$views" 20 "$program" tectum graph "pipelines/suite/pi0_views$views.lua" \
            --random-weights 1 --roofline $machine --prompt-tokens 20 || continue
        against "$views" all rows.0.frame_us.p50
        against "$views" action rows.0.nodes.act.p50
    done
}

# against VIEWS STAGE PATH: a stage's predictions, and the share that the measured time reaches.
against() {
    said=$(sed -n "s/^[a-z]* *$2  *\([0-9. ]*\) predicted/\1/p" "$work/roofline$1.out" | tail -n 1)
    took=$(ms "pi0_views$1" "$3")
    line G2 "pi0, $1 views, $2: $took ms; predicted $(echo "$said" | awk '{ printf "%s (products), %s (one term), %s (two terms, with boundaries)", $1, $2, $5 }');" \
        "products / measured = $(ratio "$(echo "$said" | awk '{ print $1 }')" "$took")"
}

# --- peers ------------------------------------------------------------------------------------

run_peers() {
    if ! command -v python3 >/dev/null 2>&1; then
        record peers bench_gemms skipped 0 "there is no python3"
        return
    fi
    attempt peers bench_gemms 60 python3 tools/measure/bench_gemms.py --device "$device" --seconds "$(limit 45)"
    case $? in
    0) record peers bench_gemms ok "$a_seconds" "$(wc -l <"$work/bench_gemms.out") lines" ;;
    3) record peers bench_gemms skipped 0 "$(sed -n 's/.*"missing": "\([^"]*\)".*/no \1/p' "$work/bench_gemms.out")"
        return ;;
    *) record peers bench_gemms failed "$a_seconds" "$a_why" ;;
    esac
    cp "$work/bench_gemms.out" "$work/peers.lines"
    peak=$(sed -n 's/.*"bf16_tflop_s": \([0-9.]*\).*/\1/p' "$work/peers.lines" | head -n 1)
    # Ours once more, after the peers: what is compared lies on both sides of them.
    layers layers_again "$peak"
    [ ! -s "$work/layers_again.lines" ] || compare
}

# layer TEXT NAME LINES: a number of a line with that layer.
layer_number() { sed -n "s/.*\"layer\": \"$1\".*\"$2\": \([0-9.]*\).*/\1/p" "$3" 2>/dev/null | head -n 1; }

compare() {
    sed -n 's/.*"kernel": "gemm_bf16", "layer": "\([^"]*\)".*/\1/p' "$work/layers_again.lines" |
        while IFS= read -r name; do
            theirs=$(layer_number "$name" graph_us "$work/peers.lines")
            a=$(layer_number "$name" us "$work/layers_again.lines")
            b=$(layer_number "$name" us "$work/layers.lines")
            printf '| %s | %s | %s | %s | %s |\n' "$name" "${b:--}" "${theirs:--}" "${a:--}" "$(ratio "$theirs" "$a")"
        done >"$work/compared"
}
