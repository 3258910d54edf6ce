#!/bin/sh
# run.sh - every check of the project.  sh tests/run.sh [--all] [--long] [--campaign HOURS] [--since REV] [--jobs N] [stage...]
#
#   setup    install the packages that are missing (tools/setup.sh --test, and where all stages run --robots: dora, ROS 2)
#   format   clang-format, on every C file
#   release  build optimised, warnings are errors; run every test and every check of the tree
#   cuda     the CUDA device and its kernels on an emulator: kernels, failures, frames, whole models
#   registers  what nvcc gave each CUDA kernel of the release build: registers, no spilling
#   aarch64  build for 64-bit ARM; kernels, tests and golden cases under qemu (packages: tools/setup.sh --aarch64)
#   asan     build with clang, warnings are errors; all C tests with address and undefined-behaviour sanitizers
#   cuda_asan  kernels and device on the emulator with the same sanitizers; only --long or by name
#   tsan     the tests that use threads, with the thread sanitizer
#   tidy     clang-tidy on every C file, or with --since on those changed since a revision (fewer paths without --long)
#   lua      luacheck on pipelines, policies and their tests
#   fuzz     each fuzz target for 5 s
#   campaign  attacks, for an hour; only by name or with --campaign
#   docs     generated parts of the documents are fresh, links lead somewhere
#
# Without stages: setup, format, release, lua and docs. --all: all of them but cuda_asan, in this order.
# --long: cuda_asan and chaos.t too, of 1000 frames, a server's million requests, every test on aarch64 that holds nothing to a clock, ten minutes for each fuzz target, three seeds for the kernels and their large
# sizes under sanitizers and from the last block to the first, every golden case, order of blocks and mistake on the emulator, the analyzer on tests.
# --jobs N: so many tests side by side; without it one more than there are processors, as some wait for a server or a clock.
# --campaign HOURS: only attacks, for so long (doc/testing.md): fuzz targets, a live server, kills of a
# memory's writer, memory that runs out in a server. Counts are in build/results/campaign.md.
# A tool that is not installed skips its stage, but fails it where CI is set (not that of aarch64).
# What tests print is kept in build/results/. Prints failures as they come, and as its last line
# `N passed, N failed, N skipped`; the exit status is 0 when nothing failed.
set -u
{ # read to its end before it runs, so that it may be edited meanwhile
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
results=$root/build/results
jobs=$(nproc 2>/dev/null || echo 2) beside=$((jobs + 1))
stages="setup format release cuda registers aarch64 asan cuda_asan tsan tidy lua fuzz docs campaign"
long= robots= hours=1 since= chosen= every="setup format release lua docs"

while [ $# -gt 0 ]; do
    case $1 in
    --all) robots=--robots every=$(echo " $stages " | sed 's/ cuda_asan / /; s/ campaign / /') ;;
    --long) long=1 robots=--robots every=${stages% campaign} ;;
    --campaign) hours=${2:?--campaign needs hours} every=campaign; shift ;;
    --jobs) jobs=${2:?--jobs needs a number} beside=$2; shift ;;
    --since) since=${2:?--since needs a revision}; shift ;;
    -h | --help) sed -n '2,/^set -u/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    *) case " $stages " in
        *" $1 "*) chosen="$chosen $1" ;;
        *) echo "run.sh: no stage '$1'; there are: $stages" >&2; exit 2 ;;
        esac ;;
    esac
    shift
done
mkdir -p "$results" || exit 1
# The interpreter itself: one that a wrapper chooses anew each time takes as long again to start.
python=$(python3 -c "import sys; print(sys.executable)" 2>/dev/null); [ ! -x "$python" ] || PATH=${python%/*}:$PATH
totals=$results/totals.$$
: >"$totals"
trap 'rm -f "$totals"' EXIT

# side COMMAND...: run a command beside others, at most $beside of them at a time; together: wait for all.
slots=$results/slots.$$
mkfifo "$slots" && exec 9<>"$slots" && rm -f "$slots" || exit 1
for slot in $(seq "$beside"); do echo "$slot" >&9; done
side() {
    read -r slot <&9
    { "$@"; echo "$slot" >&9; } &
}
together() { wait; }

# tap NAME LIMIT COMMAND...: run a program that prints TAP, count its lines.
tap() {
    name=$1 limit=$2
    shift 2
    file=$results/$(echo "$name" | tr / -)
    : >"$file.why"
    begin=$(date +%s)
    times >"$file.times"
    timeout -k 10 "$limit" "$@" >"$file.tap" 2>"$file.err" </dev/null
    status=$?
    times >>"$file.times"
    awk -v name="$name" -v status=$status -v seconds=$(($(date +%s) - begin)) -v times="$file.times" \
        -f tests/tap.awk "$file.tap" >"$file.sum"
    ! grep -q '^not ok' "$file.sum" || head -n 40 "$file.err" | sed 's/^\([^#]\)/# \1/' >"$file.why"
    tail -n 1 "$file.sum" >>"$totals"
    cat "$file.sum" "$file.why" # at once: others print, too
}

# step NAME COMMAND...: run a command that only succeeds or fails; one line of TAP.
step() {
    name=$1
    shift
    file=$results/$(echo "$name" | tr / -)
    begin=$(date +%s)
    if "$@" >"$file.log" 2>&1 </dev/null; then outcome="ok - $name" counts="1 passed, 0 failed, 0 skipped"
    else outcome="not ok - $name" counts="0 passed, 1 failed, 0 skipped"; fi
    echo "$outcome ($(($(date +%s) - begin)) s)"
    echo "# $name: $counts" >>"$totals"
    case $outcome in ok*) return 0 ;; esac
    grep -E 'error|warning|not ok|FAIL' "$file.log" | grep -v 'warnings\{0,1\} generated' | head -n 20 | sed 's/^/# /'
    echo "# ..."
    tail -n 15 "$file.log" | sed 's/^/# /'
    return 1
}

# skips NAME WHY: one line of TAP.
skips() {
    echo "ok - $1 # SKIP $2"
    echo "# $1: 0 passed, 0 failed, 1 skipped" >>"$totals"
}

# needs NAME TOOL...: false, and one line of TAP, when a tool is missing.
needs() {
    name=$1
    shift
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 && continue
        if [ -n "${CI:-}" ]; then step "$name" sh -c "echo error: $tool is not installed; exit 1"
        else skips "$name" "$tool is not installed"; fi
        return 1
    done
}

# C files of the tree, generated tables apart; with --since, those that changed.
sources() {
    { if [ -n "$since" ]; then git diff --name-only --diff-filter=d "$since" -- "$@"
      else git ls-files -co --exclude-standard -- "$@" 2>/dev/null || find . -name "$1" -o -name "${2:-$1}"; fi; } |
        sed 's|^\./||' | grep -vE '/tables/|^build/|^tests/golden/' | while read -r file; do
        [ ! -f "$file" ] || echo "$file"; done
}

# build PRESET [TARGET...]: configure and build. Where registers are looked at, CUDA code is for all whose
# report is read, and else for the GPU of this machine or for one: it is half of what is compiled.
devices=; case " ${chosen:-$every} " in *" registers "*) devices="-DTECTUM_CUDA_ARCHITECTURES=80;90a-real" ;; esac
build() {
    preset=$1
    shift
    ! command -v ninja >/dev/null 2>&1 || export CMAKE_GENERATOR=Ninja # of builds that are new
    cmake --preset "$preset" $devices || return 1
    if [ $# -gt 0 ]; then cmake --build --preset "$preset" -j"$jobs" --target "$@"
    else cmake --build --preset "$preset" -j"$jobs"; fi
}

# The subjects of the C tests of a build.
subjects() { "build/$1/tests"; }

# Tests whose sources use threads, by what they include. A header that is gone would take its tests
# out of the list without a word: stage_tsan fails then.
threaded_headers="graph/run/loop/loop.h graph/run/engine/engine.h kernels/team.h kernels/device.h tectum.h base/ring.h base/thread.h
    base/triple.h base/bell.h graph/memory/prefetch.h graph/memory/prefetch_own.h"
threaded_headers_exist() {
    for header in $threaded_headers; do [ -f "$header" ] || { echo "error: $header is gone"; return 1; }; done
}
threaded() {
    pattern=$(echo $threaded_headers | sed 's/ /|/g; s/\./\\./g')
    for subject in $(subjects tsan | grep -vx memory); do # memory counts bytes of engines that others run
        case $unthreaded in *" $subject "*) continue ;; esac
        ! grep -qsE "#include (\"($pattern|graph/(run|live)/[a-z_]+\.h)\"|<pthread\.h>)" "tests/$subject.c" || echo "$subject.t"
    done
}

stage_setup() { step setup sh tools/setup.sh --test $robots; }

format_all() { sources '*.c' '*.h' | xargs -r clang-format --dry-run -Werror; }
stage_format() { needs format clang-format && step format format_all; }

# installs: what is installed runs by itself, from anywhere.
installs() (
    prefix=$results/installed
    rm -rf "$prefix"
    cmake --install build/release --prefix "$prefix" && cd / &&
        for file in "$prefix"/share/tectum/pipelines/*.lua; do
            "$prefix/bin/tectum" expand --compact "$file" >/dev/null || exit 1
        done
)

# Subjects that hold a policy to its budget of time by the clock of the CPU: nothing runs beside them.
alone="^(attacks|policy_guard|policy_cost)$"

# Subjects that open an engine in one thread: the thread sanitizer has nothing to see in them. Here they run with a library
# that ends whoever starts one.
unthreaded=" action_output chains costs ensemble limits packed ring_sessions session turns two_models verify_keep "
no_threads=$results/no_threads.so
one_thread() { cc -O1 -shared -fPIC tests/no_threads.c -o "$no_threads"; }

# Tests that take long come first, so that none is left alone at the end.
slow="sessions.t interpret.t frozen.t gpu_check.t rings.t serve.t serve_deadlines.t verify.t control.t oft.t simulate.t serve_hostile.t"
stage_release() {
    step "release builds" build release || return 1
    step "release installs" installs
    step "release in one thread" one_thread || return 1
    TECTUM=$root/build/release/tectum && export TECTUM
    for test in $slow; do side tap "tree/$test" 600 sh "tests/$test"; done
    for test in $(subjects release | grep -vE "$alone"); do
        loaded=; case $unthreaded in *" $test "*) loaded="env LD_PRELOAD=$no_threads" ;; esac
        side tap "release/$test.t" 600 $loaded "build/release/$test.t"
    done
    for test in tests/*.t; do # cuda_registers.t and python_aarch64.t have a stage; chaos.t wants a machine that nobody else uses
        case " cuda_registers.t python_aarch64.t chaos.t $slow " in *" ${test#tests/} "*) continue ;; esac
        side tap "tree/${test#tests/}" 600 sh "$test"
    done
    [ -z "$long" ] || side tap "tree/python.t wheel" 1200 sh tests/python.t "$TECTUM" --wheel
    [ -z "$long" ] || side tap "tree/chaos.t long" 1200 sh tests/chaos.t "$TECTUM" --long
    [ -z "$long" ] || side tap "tree/serve_load.t long" 21600 sh tests/serve_load.t "$TECTUM" --long
    [ -z "$long" ] || for seed in 1 2 3; do
        side tap "release/kernels.t seed $seed" 1200 build/release/kernels.t --seed "$seed"; done
    together
    for test in $(subjects release | grep -E "$alone"); do tap "release/$test.t" 600 "build/release/$test.t"; done
}

stage_registers() {
    step "registers builds" build release || return 1 # its compiler's reports are read
    tap tree/cuda_registers.t 1800 sh tests/cuda_registers.t ${long:+--all}
}

# golden_cuda DTYPE CASE: every check of a golden case holds on the device.
golden_cuda() {
    build/release/emulator/tectum verify --format text --device cuda --dtype "$1" "tests/golden/$2"
}

# The tests of the whole engine that take --device, and golden cases that take seconds there.
on_device="schedule memory request_prompt requests session recall actionflow"
golden_short="keep/odd act/odd smolvla/base smolvla/odd smolvla/empty groot/n15_tiny pi/pi05_odd pi/pi0_odd pi/pi05_tiny pi/pi0_tiny"
golden_encoders="f32:encoders/minilm_tiny bf16:encoders/mpnet_tiny" # alike but for their positions

# The emulator's programs have nothing of nvcc's runtime: what the emulator lacks would come from there unseen.
emulated_alone() {
    for program in tests tectum device_check; do
        nm "build/release/emulator/$program" >"$results/symbols" && ! grep -q __cudaRegisterFatBinary "$results/symbols" || return 1
    done
}

stage_cuda() {
    step "cuda builds" build release emulator || return 1
    step "cuda emulated alone" emulated_alone
    for schedule in ${long:+0 1} 2; do # 2: blocks shuffled; 1: from the last to the first; 0: in order, as all others
        side tap "cuda/kernels.t schedule $schedule" 900 \
            build/release/emulator/kernels.t --tier cuda --schedule $schedule
    done
    for test in $on_device ${long:+partitions prefix run_tier two_models}; do
        side tap "cuda/$test.t" 1200 "build/release/emulator/$test.t" --device cuda
    done
    for test in emulator stand_in stand_in_graph device branch chains clusters sends squares terms weights failure green stamps profile engine frames; do
        few=
        [ "$test" != frames ] || [ -n "$long" ] || few="--frames 400" # of 10000 without kernels
        side tap "cuda/cuda_$test.t" 600 build/release/emulator/cuda_$test.t $few
    done
    side tap "cuda/kernels.t layers" 300 build/release/emulator/kernels.t --tier cuda --layers
    for test in where joules; do side tap "cuda/$test.t" 600 sh tests/$test.t build/release/emulator/tectum; done
    [ -n "$long" ] || side tap "cuda/prefix.t PyTorch" 600 \
        build/release/emulator/prefix.t --device cuda chunks_equal_those_of_pytorch_f32
    cases=$golden_short
    [ -z "$long" ] || cases=$(cd tests/golden && ls -d pi/pi0* act/* smolvla/* encoders/*_odd encoders/*_tiny | grep -v '\.')
    for case in $cases; do for dtype in f32 bf16; do
        side step "cuda/golden $case $dtype" golden_cuda $dtype "$case"
    done; done
    side step "cuda/golden groot/n17_tiny bf16" golden_cuda bf16 ../fixtures/groot/n17_tiny
    [ -n "$long" ] || for pair in $golden_encoders; do
        side step "cuda/golden ${pair#*:} ${pair%%:*}" golden_cuda "${pair%%:*}" "${pair#*:}"
    done
    together
    [ -z "$long" ] || tap cuda/gpu_check.t 3600 sh tests/gpu_check.t --emulator
    [ -z "$long" ] || tap cuda/mutate_cuda 7200 sh tests/mutate_cuda.sh
}

# Under qemu clocks say nothing: no test that holds anything to one is here.
aarch64_short="action_output arena builder chain checkpoint clock control costs device encoder exp_neon image int4_lanes
    loading matrix norm packed recorder reload requests ring safetensors session stages team tier_bits towers transform wire work"
aarch64_timed="^(attacks|policy_guard|policy_cost|lua|loop|deadline|memory_log|text_edges|tectum|tectum_sessions)$"
aarch64_golden="pi act smolvla groot encoders qwen images tokenizers safetensors openvla/tiny openvla/odd openvla/oft keep/tiny
    keep/odd keep/gap text/qwen3_tiny text/llama3_tiny text/gemma2_tiny text/smollm2_tiny text/smolvlm_tiny"
on_aarch64="qemu-aarch64-static -L build/aarch64-root"
golden_aarch64() {
    $on_aarch64 build/aarch64/tectum verify --format text --dtype "$1" "tests/golden/$2"
}

# Headers that tests/headers.t leaves out on another processor.
neon_headers() {
    for header in kernels/neon/*.h; do
        printf '#include "%s"\n#include "%s"\nint end_of_test;\n' "$header" "$header" |
            aarch64-linux-gnu-gcc -std=c17 -D_GNU_SOURCE -I. -Wall -Wextra -Wpedantic -Werror -Wno-unused-function \
                -fsyntax-only -x c - || return 1
    done
}

stage_aarch64() {
    for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do
        command -v "$tool" >/dev/null 2>&1 || { skips aarch64 "$tool is not installed"; return 0; }
    done
    sh tools/aarch64_root.sh --list >/dev/null || { skips aarch64 "no build/aarch64-root"; return 0; }
    step "aarch64 builds" build aarch64 || return 1
    step "aarch64 headers" neon_headers
    only="--small --tier neon" tests=$aarch64_short
    [ -z "$long" ] || only="--seed 1" tests=$($on_aarch64 build/aarch64/tests | grep -vE "$aarch64_timed|^kernels$")
    side tap aarch64/kernels.t 7200 $on_aarch64 build/aarch64/kernels.t $only
    for test in "kernels.t --small --tier neon gemm_int4" "kernels.t --small --tier neon gemm_int8" tier_bits.t; do # without dot products of bytes
        side tap "aarch64/${test%% *} a72" 600 qemu-aarch64-static -cpu cortex-a72 -L build/aarch64-root build/aarch64/$test
    done
    # With them alone: what else is chosen without products of matrices, and bf16 without any.
    for test in "kernels.t --small --tier neon gemm_bf16" tier_bits.t; do
        side tap "aarch64/${test%% *} a76" 600 qemu-aarch64-static -cpu cortex-a76 -L build/aarch64-root build/aarch64/$test
    done
    side tap aarch64/python_aarch64.t 3600 sh tests/python_aarch64.t build/aarch64/tectum
    for test in $tests; do side tap "aarch64/$test.t" 3600 $on_aarch64 "build/aarch64/$test.t"; done
    cases="act/odd smolvla/odd groot/n15_tiny pi/pi05_odd"
    [ -z "$long" ] || cases=$aarch64_golden
    for case in $cases; do for dtype in f32 bf16; do
        side step "aarch64/golden $case $dtype" golden_aarch64 $dtype "$case"
    done; done
    together
    [ -z "$long" ] || long_aarch64
}

# Scripts that test the program, which is one that starts qemu.
long_aarch64() {
    printf '#!/bin/sh\nexec %s -L %s/build/aarch64-root %s/build/aarch64/tectum "$@"\n' "$(command -v qemu-aarch64-static)" "$root" "$root" \
        >"$results/tectum-aarch64" && chmod +x "$results/tectum-aarch64" || return 1
    for test in cli.t doctor.t adapters.t act_robot.t; do
        side tap "aarch64/tree/$test" 7200 sh "tests/$test" "$results/tectum-aarch64"
    done
    together
}

stage_asan() {
    needs asan clang || return 1
    step "asan builds" build asan || return 1
    export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
    side tap asan/serve.t 600 env TEST_SLOWNESS=10 sh tests/serve.t build/asan/tectum
    side tap asan/serve_pipelines.t 600 env TEST_SLOWNESS=10 sh tests/serve_pipelines.t build/asan/tectum
    side tap asan/serve_tls.t 600 env TEST_SLOWNESS=10 sh tests/serve_tls.t build/asan/tectum
    for test in $(subjects asan | grep -vE "$alone"); do
        small=
        [ "$test" != kernels ] || [ -n "$long" ] || small=--small # large sizes are in the release stage
        side tap "asan/$test.t" 600 "build/asan/$test.t" $small
    done
    together
    for test in $(subjects asan | grep -E "$alone"); do tap "asan/$test.t" 600 "build/asan/$test.t"; done
    unset ASAN_OPTIONS UBSAN_OPTIONS
}

stage_cuda_asan() {
    tests="kernels.t cuda_device.t"
    [ -z "$long" ] || tests="$tests cuda_failure.t cuda_engine.t cuda_emulator.t"
    step "cuda_asan builds" build emulator_asan emulator || return 1
    for test in $tests; do
        only=
        [ "$test" != kernels.t ] || only="--tier cuda --schedule 0"
        side tap "cuda_asan/$test" 1200 "build/emulator_asan/emulator/$test" $only
    done
    together
}

# first "LIST" NAME...: the list, with what has these names in front.
first() {
    list=$1
    shift
    for name in "$@"; do echo "$list" | grep -xF "$name"; done
    echo "$list" | grep -vxF "$(printf '%s\n' "$@")"
}

slow_tsan="prefix.t run_memory.t partitions.t tectum.t"
stage_tsan() {
    step "tsan headers" threaded_headers_exist
    step "tsan builds" build tsan tectum tests || return 1
    # Address-space layout of newer kernels is more random than this sanitizer of gcc 12 allows for.
    fixed=; ! setarch "$(uname -m)" -R true 2>/dev/null || fixed="setarch $(uname -m) -R"
    export TSAN_OPTIONS=halt_on_error=1
    side tap tsan/serve.t 600 env TEST_SLOWNESS=10 $fixed sh tests/serve.t build/tsan/tectum
    side tap tsan/serve_pipelines.t 600 env TEST_SLOWNESS=10 $fixed sh tests/serve_pipelines.t build/tsan/tectum
    side tap tsan/serve_tls.t 600 env TEST_SLOWNESS=10 $fixed sh tests/serve_tls.t build/tsan/tectum
    tests=$(threaded)
    for test in kernels.t $(first "$tests" $slow_tsan); do
        small=
        [ "$test" != kernels.t ] || small=--threads
        [ "$test" != kernels.t ] || [ -n "$long" ] || small="$small --small" # lanes race at any size
        side tap "tsan/$test" 900 $fixed "build/tsan/$test" $small
    done
    together
    unset TSAN_OPTIONS
}

# The analyzer walks the paths of the engine to a tenth of its own limit (225000 nodes), and leaves out the tests, whose
# checks are many short branches that run under the sanitizers anyway, unless it is asked for --long.
tidy() {
    xargs -r -n 4 -P "$jobs" clang-tidy -p build/asan --quiet "$@"
}
tidy_all() {
    cmake --preset asan || return 1
    sources '*.c' | grep -vE '^(tests/(fuzz|cuda_emulator|cuda)|kernels/cuda)/' >"$results/tidy.files"
    [ -z "$long" ] || { tidy <"$results/tidy.files"; return; }
    grep -v '^tests/' "$results/tidy.files" | tidy --extra-arg=-Xclang --extra-arg=-analyzer-config \
        --extra-arg=-Xclang --extra-arg=max-nodes=20000 || return 1
    grep '^tests/' "$results/tidy.files" | tidy '--checks=-clang-analyzer-*'
}
stage_tidy() { needs tidy clang-tidy clang && step tidy tidy_all; }

stage_lua() { needs lua luacheck && step lua luacheck --no-color -q pipelines policies tests/policies tools/gpu; }

# fuzz_one TARGET: from the files that its seeds come from, without leaving anything in the tree.
fuzz_one() {
    seeds=
    case $1 in
    image) seeds="tests/golden/images/decode" ;;
    policy) seeds="policies tests/policies" ;;
    safetensors) seeds="tests/golden/safetensors/files" ;;
    esac
    [ ! -d "tests/fuzz/seeds/$1" ] || seeds="$seeds tests/fuzz/seeds/$1"
    mkdir -p "build/fuzz/corpus/$1" "build/fuzz/found"
    "build/asan/fuzz_$1" -max_total_time="${2:-$([ -n "$long" ] && echo 600 || echo 5)}" -timeout=20 \
        -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$1-" \
        "build/fuzz/corpus/$1" $seeds
}
stage_fuzz() {
    needs fuzz clang || return 1
    targets=$(for file in tests/fuzz/*.c; do [ ! -f "$file" ] || basename "$file" .c; done)
    [ -n "$targets" ] || return 0
    step "fuzz builds" build asan $(for target in $targets; do echo "fuzz_$target"; done) || return 1
    for target in $targets; do side step "fuzz/$target" fuzz_one "$target"; done
    together
}

# A campaign gives fuzz targets half of its time, the live server three tenths, a server whose memory
# runs out and a memory's writer that is killed one tenth each. The server is the one with sanitizers.
kill_writers() {
    end=$(($(date +%s) + $1))
    while [ "$(date +%s)" -lt "$end" ]; do
        build/release/memory_log.t --rounds 500 nothing_acknowledged_is_lost_by_kills || return 1
    done
}
refuse_memory() {
    cc -O1 -shared -fPIC -D_GNU_SOURCE -I. tests/allocations.c tests/campaign/refuse.c -o build/results/refuse.so &&
        python3 tests/campaign/refuse.py build/release/tectum build/results/refuse.so "$1"
}
stage_campaign() {
    needs campaign clang python3 || return 1
    step "release builds" build release || return 1
    step "asan builds" build asan || return 1
    seconds=$(awk "BEGIN { print int($hours * 3600) }")
    targets=$(for file in tests/fuzz/*.c; do basename "$file" .c; done)
    each=$((seconds / 2 * jobs / $(echo "$targets" | wc -l) + 1))
    for target in $targets; do side step "campaign/$target" fuzz_one "$target" $each; done
    together
    export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
    step campaign/live python3 tests/campaign/live.py build/asan/tectum $((seconds * 3 / 10)) "$(date +%s)"
    unset ASAN_OPTIONS UBSAN_OPTIONS
    step campaign/refuse refuse_memory $((seconds / 10))
    step campaign/kills kill_writers $((seconds / 10))
    sh tests/campaign/report.sh "$results" "$hours" >"$results/campaign.md"
}

stage_docs() { step docs sh tools/docs.sh --check; }

# Ticks that all processors worked, and all there were: what waits, more tests side by side would use.
ticks() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat 2>/dev/null; }
started=$(date +%s)
for stage in ${chosen:-$every}; do
    start=$(date +%s) before=$(ticks)
    echo "# stage $stage"
    "stage_$stage"
    busy=$(echo "$before $(ticks)" | awk 'NF == 4 && $4 > $2 { printf ", processors %d %% busy", 100 * ($3 - $1) / ($4 - $2) }')
    echo "# stage $stage took $(($(date +%s) - start)) s$busy"
done
echo "# everything took $(($(date +%s) - started)) s; details are in build/results/"
awk -F': ' '{ split($NF, word, /[ ,]+/); p += word[1]; f += word[3]; s += word[5] }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' "$totals"
exit
}
