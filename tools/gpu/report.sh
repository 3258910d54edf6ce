# shellcheck shell=sh disable=SC2154
# report.sh - the two files that gpu_check.sh, which reads this file, leaves: all figures, and a page.

# joined FILE: lines of JSON as the items of an array.
joined() { [ ! -s "$1" ] || sed '$!s/$/,/' "$1"; }

clocks() {
    [ -s "$work/clocks" ] || { echo null; return; }
    awk -F ', *' '{ if (!n++ || $1 < low) low = $1; if ($1 > high) high = $1; m = $2; if ($3 > w) w = $3; if ($4 > t) t = $4 }
        END { printf "{\"sm_mhz_low\": %d, \"sm_mhz_high\": %d, \"memory_mhz\": %d, \"watts_high\": %.0f, \"celsius_high\": %d, \"samples\": %d}\n", low, high, m, w, t, n }' "$work/clocks"
}

json() {
    echo '{'
    echo " \"gpu\": $(quote "$gpu"), \"device\": $(quote "$device"), \"driver\": $(quote "$driver"),"
    echo " \"cuda\": $(quote "$cuda"), \"arch\": $(quote "$(made_of arch)"), \"commit\": $(quote "$commit"),"
    echo " \"date\": $(quote "$(date -u +%Y-%m-%dT%H:%M:%SZ)"), \"command\": $(quote "$command_line"),"
    echo " \"host\": $(quote "$(uname -sr), $(nproc) processors"), \"clocks_max\": $(quote "$([ -n "$cpu" ] || smi clocks.max.sm,clocks.max.mem,power.limit)"),"
    echo " \"clocks\": $(clocks), \"size\": $(quote "$size"), \"seconds\": $(($(date +%s) - began)),"
    echo ' "results": ['
    awk -F '\t' 'function q(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
        { printf "%s  {\"part\": %s, \"name\": %s, \"outcome\": %s, \"seconds\": %d, \"text\": %s}", n++ ? ",\n" : "", q($1), q($2), q($3), $4, q($5) }
        END { print "" }' "$work/results"
    echo ' ], "goals": ['
    awk -F '\t' 'function q(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
        { printf "%s  {\"goal\": %s, \"text\": %s}", n++ ? ",\n" : "", q($1), q($2) } END { print "" }' "$work/lines"
    echo ' ], "benches": {'
    comma=''
    while read -r name; do
        printf '%s "%s":\n' "$comma" "$name"
        cat "$work/$name.out"
        comma=,
    done <"$work/benches"
    for list in layers layers_again peers; do
        echo "$([ "$list" = layers ] && echo '}'), \"$list\": ["
        joined "$work/$list.lines"
        echo ' ]'
    done
    echo '}'
}

# A table of p50, p99 and the worst of every row of every bench.
rows() {
    while read -r name; do
        i=0
        while [ -n "$(value "$name" rows.$i.policy)" ]; do
            echo "| $name | $(value "$name" rows.$i.policy) $(value "$name" rows.$i.params) | $(value "$name" \
                rows.$i.frames) | $(ms "$name" rows.$i.frame_us.p50) | $(ms "$name" rows.$i.frame_us.p99) | $(ms \
                "$name" rows.$i.frame_us.max) | $(ms "$name" rows.$i.action_us.p50) | $(ms "$name" \
                rows.$i.action_us.p99) | $(value "$name" rows.$i.host_us.p99) | $(value "$name" rows.$i.tokens_s) |"
            i=$((i + 1))
        done
    done <"$work/benches"
}

markdown() {
    echo "# $gpu, $(date -u +%Y-%m-%d)"
    echo
    echo "Driver ${driver:-none}, CUDA ${cuda:-none}, commit \`$commit\`; models of size $size with random weights, bf16."
    echo "Command: \`$command_line\`. Clocks and power while it ran: \`$(clocks)\`."
    echo
    echo "| part | | outcome | s | |"
    echo "|---|---|---|---|---|"
    awk -F '\t' '{ gsub(/\|/, "\\|", $5); printf "| %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5 }' "$work/results"
    if [ -s "$work/lines" ]; then
        echo
        echo "## Goals"
        echo
        awk -F '\t' '{ printf "- **%s** %s\n", $1, $2 }' "$work/lines"
        echo
        echo "## Rows"
        echo
        echo "Milliseconds; host in microseconds. Rows of a bench took turns."
        echo
        echo "| bench | policy | frames | frame p50 | p99 | max | action p50 | p99 | host p99 us | tokens/s |"
        echo "|---|---|---|---|---|---|---|---|---|---|"
        rows
    fi
    [ ! -s "$work/worst" ] || { echo; echo "## Kernels"; echo; sed 's/^# //; s/^/    /' "$work/worst"; }
    if [ -s "$work/compared" ]; then
        echo
        echo "Microseconds of a GEMM: tectum (float32 activations as two bf16 terms, so twice the products)," \
            "torch in a CUDA graph (bf16 activations), tectum again; torch / tectum."
        echo
        echo "| layer | tectum | torch | tectum | ratio |"
        echo "|---|---|---|---|---|"
        cat "$work/compared"
    fi
}
