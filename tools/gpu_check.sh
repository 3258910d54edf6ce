#!/bin/sh
# gpu_check.sh - check and measure tectum on a machine with a GPU.  tools/gpu_check.sh [options]
#
#   --parts LIST    of build,tests,golden,sanitizer,bench,peers; all of them
#   --minutes N     for everything together; 8
#   --out DIR       where DIR/<gpu>_<date>.json and .md go; doc/measurements
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
known="build tests golden sanitizer bench peers"
parts=$known minutes=8 out=doc/measurements device=cuda size='' program=''
command_line="tools/gpu_check.sh $*"

while [ $# -gt 0 ]; do
    case $1 in
    --parts) parts=$(echo "${2:?--parts needs a list}" | tr ',' ' '); shift ;;
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
for part in $parts; do
    case " $known " in
    *" $part "*) ;;
    *) echo "gpu_check: no part '$part'; there are: $known" >&2; exit 2 ;;
    esac
done
case $minutes in '' | *[!0-9]* | 0) echo "gpu_check: --minutes is a whole number from 1" >&2; exit 2 ;; esac
cpu=''
case $device in
cpu) cpu=1 size=${size:-tiny} ;;
cuda | cuda:[0-9]*) size=${size:-full} ;;
*) echo "gpu_check: --device is cuda, cuda:N or cpu" >&2; exit 2 ;;
esac

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
began=$(date +%s) failed=0
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
    *) echo "not ok - $1 $2 ($4 s) $5"; failed=1 ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" >>"$work/results"
}

# attempt PART NAME SECONDS COMMAND...: its output into $work/NAME.out and .err; its exit code.
attempt() {
    a_name=$2 a_limit=$(limit "$3") a_seconds=0 a_why=''
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
    124 | 137) a_why="ended after its limit of $a_limit s" ;;
    *) a_why="exit code $a_code: $(grep -v '^#* *$' "$work/$a_name.err" | tail -n 1 | cut -c 1-300)" ;;
    esac
    return "$a_code"
}

# --- the program ------------------------------------------------------------------------------

# What to compile for: the GPU that is there, and on 9.0 what is for that one alone.
architecture() {
    case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
    9.0) echo 90a-real ;;
    *) echo native ;;
    esac
}

build_here() {
    folder=build/gpu_native
    if [ -n "$cpu" ]; then
        folder=build/release
        attempt build configure 60 cmake --preset release || return 1
    else
        attempt build configure 60 cmake -S . -B $folder -DCMAKE_BUILD_TYPE=Release \
            -DTECTUM_CUDA=on "-DTECTUM_CUDA_ARCHITECTURES=$(architecture)" || return 1
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
        grep -E 'rror' "$work/$a_name.err" "$work/$a_name.out" | head -n 10
    fi
else
    for program in build/gpu_native/device_check build/gpu_90/device_check; do
        [ ! -x $program ] || break
    done
    [ -z "$cpu" ] || program=build/release/device_check
fi
if [ ! -x "$program" ]; then
    echo "gpu_check: there is no device_check; leave 'build' among the parts, or name one with --program" >&2
    exit 1
fi
"$program" tectum verify --device "$device" --format text tests/golden/pi/pi0_tiny >/dev/null 2>"$work/probe"
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

run_tests() {
    if [ -n "$cpu" ]; then # the others have their turn in tests/run.sh
        tap requests 60 "$program" requests --device cpu
        tap kernels 60 "$program" kernels --tier 'avx*' 'r*'
        return
    fi
    for name in schedule partitions memory prefix request_prompt requests loop; do
        tap "$name" 40 "$program" "$name" --device "$device"
    done
    tap kernels 90 "$program" kernels --tier cuda
}

run_golden() {
    cases=tests/golden/pi
    [ -z "$cpu" ] || cases=tests/golden/pi/pi0_tiny
    for dtype in f32 bf16; do
        if attempt golden "golden_$dtype" 40 "$program" tectum verify --device "$device" \
            --dtype "$dtype" --format text "$cases"; then
            record golden "$dtype" ok "$a_seconds" "$(tail -n 1 "$work/golden_$dtype.out")"
        else
            record golden "$dtype" failed "$a_seconds" "$(tail -n 1 "$work/golden_$dtype.out") $a_why"
            grep -v '^ok' "$work/golden_$dtype.out" | head -n 8
        fi
    done
}

run_sanitizer() {
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    if [ -n "$cpu" ] || [ -z "$tool" ]; then
        record sanitizer compute-sanitizer skipped 0 "not installed, or no GPU"
        return
    fi
    sanitize memcheck prefix --device cuda
    sanitize memcheck kernels --tier cuda '*norm'
    sanitize racecheck kernels --tier cuda '*norm'
    sanitize racecheck kernels --tier cuda attention_bf16
}

sanitize() {
    kind=$1
    shift
    name=${kind}_$1_$(echo "${4:-all}" | tr -dc a-z0-9_)
    if attempt sanitizer "$name" 25 "$tool" --tool "$kind" --error-exitcode 9 "$program" "$@"; then
        record sanitizer "$name" ok "$a_seconds" "$(grep 'SUMMARY' "$work/$name.out" | tail -n 1)"
    else
        record sanitizer "$name" failed "$a_seconds" "$a_why; $(grep 'SUMMARY' "$work/$name.out" | tail -n 1)"
    fi
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
report=$out/${slug}_$(date -u +%Y-%m-%d)
json >"$report.json"
markdown >"$report.md"
echo "# $report.json, $report.md; $(($(date +%s) - began)) s"
exit $failed
