#!/bin/sh
# gpu_check.sh - check and measure tectum on a machine with a GPU.  tools/gpu_check.sh [options]
#
#   --parts LIST    of build,tests,golden,sanitizer,profile,bench,peers; all of them
#   --call N        one of three calls in place of --parts, for a machine that is lent for minutes:
#                   1 is tests,golden; 2 is bench,peers; 3 is profile,sanitizer
#   --minutes N     for everything together; 8
#   --side N        programs of tests that run side by side; 4, on the CPU 1
#   --out DIR       where DIR/<gpu>_<date>[_call<N>].json, .md and _logs.tar.gz go; doc/measurements
#   --device NAME   cuda, cuda:N, or cpu, which tries this script out with tiny models; cuda
#   --size NAME     of the models that are measured: full, small or tiny; full, on the CPU tiny
#   --program FILE  a device_check that is already built
#
# In a tree that tools/gpu_tree.sh made nothing is built; elsewhere `build` compiles on the spot.
# Each part has a time limit, and one that fails does not stop the others. The exit code is 0 when
# all went well, 1 when something did not, 2 for a wrong option, 4 when there is no such device.
# doc/gpu.md says how to read the reports.
set -u
cd "$(dirname "$0")/.." || exit 1
known="build tests golden sanitizer profile bench peers"
parts=$known minutes=8 out=doc/measurements device=cuda size='' program='' call='' side=''
command_line="tools/gpu_check.sh $*"

while [ $# -gt 0 ]; do
    case $1 in
    --parts) parts=$(echo "${2:?--parts needs a list}" | tr ',' ' '); shift ;;
    --call) call=${2:?--call needs a number}; shift ;;
    --side) side=${2:?--side needs a number}; shift ;;
    --minutes) minutes=${2:?--minutes needs a number}; shift ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --device) device=${2:?--device needs a name}; shift ;;
    --size) size=${2:?--size needs a name}; shift ;;
    --program) program=${2:?--program needs a file}; shift ;;
    -h | --help) sed -n '2,/^set -u/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    *) echo "gpu_check: unknown option '$1'; --help lists what there is" >&2; exit 2 ;;
    esac
    shift
done
case $call in
'') ;;
1) parts="tests golden" ;;
2) parts="bench peers" ;;
3) parts="profile sanitizer" ;;
*) echo "gpu_check: --call is 1, 2 or 3" >&2; exit 2 ;;
esac
for part in $parts; do
    case " $known " in
    *" $part "*) ;;
    *) echo "gpu_check: no part '$part'; there are: $known" >&2; exit 2 ;;
    esac
done
case $minutes in '' | *[!0-9]* | 0) echo "gpu_check: --minutes is a whole number from 1" >&2; exit 2 ;; esac
case $side in *[!0-9]* | 0) echo "gpu_check: --side is a whole number from 1" >&2; exit 2 ;; esac
cpu=''
case $device in
cpu) cpu=1 size=${size:-tiny} side=${side:-1} ;;
cuda | cuda:[0-9]*) size=${size:-full} side=${side:-4} ;;
*) echo "gpu_check: --device is cuda, cuda:N or cpu" >&2; exit 2 ;;
esac
few='' # frames are few where nothing is measured
[ "$size" != tiny ] || few=1

index=0
case $device in cuda:*) index=${device#cuda:} ;; esac
if [ -z "$cpu" ]; then # the one that nvidia-smi calls so, for everything that runs here
    export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$index"
    device=cuda
fi

work=$(mktemp -d) || exit 1
sampler=''
# shellcheck disable=SC2317
finish() {
    [ -z "$sampler" ] || kill "$sampler" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
began=$(date +%s)
end=$((began + 60 * minutes - 5))
: >"$work/results"
: >"$work/benches"
: >"$work/lines"

chosen() { case " $parts " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

quote() { printf '"%s"' "$(printf '%s' "$1" | tr '\t\n\r' '   ' | sed 's/\\/\\\\/g; s/"/\\"/g')"; }

# limit SECONDS: that share of eight minutes, at most what is left; 0 when nothing is.
limit() {
    left=$((end - $(date +%s))) share=$(($1 * minutes / 8))
    [ $share -gt 0 ] || share=1
    [ $share -lt $left ] || share=$left
    [ $share -gt 0 ] || share=0
    echo $share
}

# record PART NAME OUTCOME SECONDS TEXT: one line of TAP, one of the report.
record() {
    case $3 in
    ok) echo "ok - $1 $2 ($4 s) $5" ;;
    skipped) echo "ok - $1 $2 # SKIP $5" ;;
    *) echo "not ok - $1 $2 ($4 s) $5" ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" >>"$work/results"
}

# attempt PART NAME SECONDS COMMAND...: its output into $work/NAME.out and .err; its exit code.
attempt() {
    a_name=$2 a_limit=$(limit "$3") a_seconds=0 a_why='' a_code=1
    shift 3
    : >"$work/$a_name.out"
    : >"$work/$a_name.err"
    if [ "$a_limit" -eq 0 ]; then
        a_why="no time was left"
        return 1
    fi
    a_start=$(date +%s)
    timeout -k 5 "$a_limit" "$@" >"$work/$a_name.out" 2>"$work/$a_name.err" </dev/null
    a_code=$? a_seconds=$(($(date +%s) - a_start))
    case $a_code in
    0) return 0 ;;
    124 | 137) a_why="was ended at its limit of $a_limit s" ;;
    *) a_why="exit code $a_code: $(grep -v '^#* *$' "$work/$a_name.err" | tail -n 1 | cut -c 1-300)" ;;
    esac
    return "$a_code"
}

# --- the program ------------------------------------------------------------------------------

missing="there is no device_check; leave 'build' among the parts, or name one with --program"
build_here() {
    folder=build/gpu_native
    [ -n "$cpu" ] || echo "# building device_check for the GPU of this machine: some minutes"
    if [ -n "$cpu" ]; then
        folder=build/release
        attempt build configure 60 cmake --preset release || return 1
    else
        attempt build configure 60 cmake -S . -B $folder -DCMAKE_BUILD_TYPE=Release \
            -DTECTUM_CUDA=on || return 1
    fi
    attempt build compile 420 cmake --build $folder -j"$(nproc)" --target device_check || return 1
    program=$folder/device_check
}

if [ -n "$program" ]; then :
elif [ -x bin/device_check ]; then program=bin/device_check
elif chosen build; then
    if build_here; then record build device_check ok "$a_seconds" "$program"
    else
        record build "$a_name" failed "$a_seconds" "$a_why"
        missing="the build failed ($a_name: $a_why)"
        case $a_code in
        124 | 137) missing="the build $a_why; what is built stays: go on with a larger --minutes, or end it
gpu_check: with 'cmake --build $folder --target device_check' and name $folder/device_check with --program" ;;
        esac
        grep -E 'rror' "$work/$a_name.err" "$work/$a_name.out" | head -n 10
    fi
else
    for program in build/gpu_native/device_check build/gpu_90/device_check; do
        [ ! -x $program ] || break
    done
    [ -z "$cpu" ] || program=build/release/device_check
fi
if [ ! -x "$program" ]; then
    echo "gpu_check: $missing" >&2
    exit 1
fi
timeout -k 5 60 "$program" tectum verify --device "$device" --format text tests/golden/pi/pi0_tiny \
    >/dev/null 2>"$work/probe"
if [ $? -eq 4 ]; then
    cat "$work/probe" >&2
    exit 4
fi

# --- the machine ------------------------------------------------------------------------------

smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader -i "$index" 2>/dev/null | head -n 1; }
gpu='' driver=''
if [ -z "$cpu" ]; then
    gpu=$(smi name) driver=$(smi driver_version)
    [ -n "$gpu" ] || gpu=$(sed -n 's/^Model:[[:space:]]*//p' /proc/driver/nvidia/gpus/*/information 2>/dev/null | head -n 1)
    nvidia-smi -i "$index" -l 2 --format=csv,noheader,nounits \
        --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu >"$work/clocks" 2>/dev/null &
    sampler=$!
fi
[ -n "$gpu" ] || gpu=$([ -n "$cpu" ] && echo CPU || echo GPU)
made_of() { sed -n "s/^$1=//p" made_of 2>/dev/null; }
commit=$(made_of commit)
[ -n "$commit" ] || commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
cuda=$(made_of nvcc)
[ -n "$cuda" ] || cuda=$(nvcc --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
echo "# $gpu, driver ${driver:-none}, CUDA ${cuda:-none}, commit $commit, $program, at most $minutes minutes"

# --- tests ------------------------------------------------------------------------------------

# beside FUNCTION ARGUMENTS...: run it in the background, at most $side at a time.
running=''
beside() {
    set -- "$@"
    # shellcheck disable=SC2086
    set_of=$(echo $running | wc -w)
    if [ "$set_of" -ge "$side" ]; then
        wait "${running%% *}"
        case $running in *" "*) running=${running#* } ;; *) running='' ;; esac
    fi
    "$@" &
    running="${running:+$running }$!"
}
together() { # all that were begun have ended
    for child in $running; do wait "$child"; done
    running=''
}

# tap NAME SECONDS COMMAND...: a program that prints TAP.
tap() {
    t_name=$1
    attempt tests "$@" && a_why=''
    t_bad=$(grep -c '^not ok' "$work/$t_name.out")
    t_good=$(grep -c '^ok' "$work/$t_name.out")
    t_skipped=$(grep -c '^ok.*# SKIP' "$work/$t_name.out")
    t_text="$((t_good - t_skipped)) passed, $t_bad failed, $t_skipped skipped"
    if [ -z "$a_why" ] && [ "$t_bad" -eq 0 ] && [ "$t_good" -gt "$t_skipped" ]; then
        record tests "$t_name" ok "$a_seconds" "$t_text"
        return
    fi
    record tests "$t_name" failed "$a_seconds" "$t_text${a_why:+; $a_why}"
    grep '^not ok' "$work/$t_name.out" | head -n 8
    head -n 12 "$work/$t_name.err"
}

# The longest first, so that none of them is left alone at the end.
device_tests="memory partitions schedule two_models run_memory run_tier prefix recall request_prompt requests remember
    recall_pictures actionflow chains score text_edges memory_beside"

run_tests() {
    if [ -n "$cpu" ]; then # the others have their turn in tests/run.sh
        tap requests 60 "$program" requests --device cpu
        tap kernels 60 "$program" kernels --tier 'avx*' 'r*'
        return
    fi
    beside tap kernels 180 "$program" kernels --tier cuda
    # The same products without warp groups: says which of the two is wrong where one is.
    [ ! -x bin/device_check_plain ] ||
        beside tap kernels_plain 180 bin/device_check_plain kernels --tier cuda 'gemm*'
    for name in $device_tests; do
        beside tap "$name" 120 "$program" "$name" --device "$device"
    done
    together
}

# golden NAME DTYPE CASE...: every check of these cases.
golden() {
    g_name=$1_$2 g_dtype=$2
    shift 2
    if attempt golden "golden_$g_name" 90 "$program" tectum verify --device "$device" --dtype "$g_dtype" \
        --format text "$@"; then
        record golden "$g_name" ok "$a_seconds" "$(tail -n 1 "$work/golden_$g_name.out")"
    else
        record golden "$g_name" failed "$a_seconds" "$(tail -n 1 "$work/golden_$g_name.out") $a_why"
        grep -v '^ok' "$work/golden_$g_name.out" | head -n 8
    fi
}

run_golden() {
    for dtype in f32 bf16; do
        if [ -n "$cpu" ]; then
            golden pi $dtype tests/golden/pi/pi0_tiny
            continue
        fi
        for family in pi openvla keep smolvla groot act text qwen encoders; do
            cases=tests/golden/$family
            case $family in # some cases are of no checkpoint, or of a model that does not run yet
            text) cases="tests/golden/text/qwen3_tiny tests/golden/text/llama3_tiny
                tests/golden/text/gemma2_tiny tests/golden/text/smollm2_tiny" ;;
            keep) cases="tests/golden/keep/tiny tests/golden/keep/odd tests/golden/keep/gap" ;;
            esac
            # shellcheck disable=SC2086
            [ ! -d tests/golden/$family ] || beside golden $family $dtype $cases
        done
    done
    together
}

run_sanitizer() {
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    if [ -n "$cpu" ] || [ -z "$tool" ]; then
        record sanitizer compute-sanitizer skipped 0 "not installed, or no GPU"
        return
    fi
    beside sanitize memcheck requests --device cuda 'a_text*'
    beside sanitize memcheck kernels --tier cuda '*norm' --small
    beside sanitize racecheck kernels --tier cuda '*norm' --small
    beside sanitize memcheck kernels --tier cuda 'attention_bf16' --small
    beside sanitize memcheck kernels --tier cuda 'gemm_bf16' --small
    beside sanitize memcheck kernels --tier cuda 'gemm_int*' --small
    together
}

sanitize() {
    kind=$1
    shift
    name=${kind}_$1_$(echo "${4:-all}" | tr -dc a-z0-9_)
    # what it watches is hundreds of times slower: no replay is to count as hung before the limit
    if attempt sanitizer "$name" 100 env TECTUM_CUDA_PATIENCE=100 "$tool" --tool "$kind" --error-exitcode 9 "$program" "$@" &&
        { grep -q '^ok' "$work/$name.out" || { a_why="no test ran" && false; }; }; then
        record sanitizer "$name" ok "$a_seconds" "$(grep 'SUMMARY' "$work/$name.out" | tail -n 1)"
    else
        record sanitizer "$name" failed "$a_seconds" "$a_why; $(grep 'SUMMARY' "$work/$name.out" | tail -n 1)"
    fi
}

# What limits the kernels that a frame spends most in, as Nsight Compute's counters say: two starts of
# each that differs in its grid, for a graph has each layer twenty times.
run_profile() {
    tool=$(command -v ncu || ls /usr/local/cuda/bin/ncu 2>/dev/null)
    if [ -n "$cpu" ] || [ -z "$tool" ]; then
        record profile ncu skipped 0 "not installed, or no GPU"
        return
    fi
    for kernel in gemm_bf16 attention_bf16 rmsnorm; do
        if attempt profile "ncu_$kernel" 60 "$tool" --clock-control none --graph-profiling node --section SpeedOfLight \
            --section WarpStateStats --section Occupancy --section LaunchStats --filter-mode per-launch-config \
            --launch-count 2 "$program" kernels --tier cuda --layers "$kernel"; then
            profiled=$(grep -c 'Duration' "$work/ncu_$kernel.out")
            [ "$profiled" -gt 0 ] && outcome=ok || outcome=failed
            record profile "$kernel" "$outcome" "$a_seconds" "$profiled kernels; in the logs"
        else record profile "$kernel" failed "$a_seconds" "$a_why"; fi
    done
}

# shellcheck source=tools/gpu/benches.sh
. tools/gpu/benches.sh
# shellcheck source=tools/gpu/report.sh
. tools/gpu/report.sh

for part in $parts; do
    case $part in
    tests) run_tests ;;
    golden) run_golden ;;
    sanitizer) run_sanitizer ;;
    profile) run_profile ;;
    bench) run_bench ;;
    peers) run_peers ;;
    esac
done
if [ -n "$sampler" ]; then
    kill "$sampler" 2>/dev/null
    sampler=''
fi
mkdir -p "$out" || exit 1
slug=$(printf '%s' "$gpu" | tr '[:upper:]' '[:lower:]' | sed 's/nvidia//g; s/[^a-z0-9]\{1,\}/_/g; s/^_//; s/_$//')
report=$out/${slug}_$(date -u +%Y-%m-%d)${call:+_call$call}
json >"$report.json"
markdown >"$report.md"
tar czf "${report}_logs.tar.gz" -C "$work" . # what every step printed
echo "# $report.json, $report.md, ${report}_logs.tar.gz; $(($(date +%s) - began)) s"
awk -F '\t' '$3 == "failed" { bad = 1 } END { exit bad }' "$work/results"
