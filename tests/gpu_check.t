#!/bin/sh
# gpu_check.t - tools/gpu_check.sh runs through on the CPU, writes its two files, and says what is wrong;
# its three calls with stand-ins for a GPU, a stand-in for each failure.
#
#   sh tests/gpu_check.t --emulator [CALL...]   and then these calls (all three) whole, on the emulator
cd "$(dirname "$0")/.." || exit 1
emulated='' # calls
if [ "${1:-}" = --emulator ]; then
    shift
    emulated=${*:-1 2 3}
fi
if [ ! -x build/release/tectum ]; then
    echo "1..0 # SKIP tectum is not built"
    exit 0
fi
n=0 bad=0
check() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"
    else bad=1; echo "not ok $n - $2"; fi
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

sh tools/gpu_check.sh --device cpu --parts build,tests,golden,bench --minutes 60 --out "$work/out" >"$work/log" 2>&1
check $? "every part ends well"
grep '^not ok' "$work/log" | sed 's/^/# /'
set -- "$work"/out/cpu_*.json
[ -s "$1" ] && python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert len(r["benches"]) == 6, r' "$1"
check $? "the JSON holds six benches"
set -- "$work"/out/cpu_*.md
[ -s "$1" ] && grep -q 'G13.*byte for byte' "$1" && ! grep -q 'DIFFER' "$1"
check $? "the page has the goals"
test_programs=$(build/release/device_check)
[ -n "$test_programs" ] && ! echo "$test_programs" | grep -qx loop &&
    ! nm build/release/device_check | grep -qE ' [TW] (malloc|free|pthread_mutex_lock)$'
check $? "nothing of it watches allocations or locks"
! grep -q 'not in this release' "$1" && [ "$(grep -c '^- [*][*]G[678][*][*].* = [0-9]' "$1")" = 9 ]
check $? "those of rings and memories too"

sh tools/gpu_check.sh --parts bench,dance >/dev/null 2>&1
[ $? = 2 ]; check $? "an unknown part is refused"
sh tools/gpu_check.sh --device tpu >/dev/null 2>&1
[ $? = 2 ]; check $? "an unknown device is refused"
sh tools/gpu_check.sh --device cuda:9 --program build/release/device_check --out "$work/none" >"$work/log" 2>&1
[ $? = 4 ] && [ ! -e "$work/none" ]; check $? "no such device: exit 4, no report"
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" != requests ] || { echo "not ok 1 - broken"; exit 1; }\nexec build/release/device_check "$@"\n' >"$work/broken"
chmod +x "$work/broken"
sh tools/gpu_check.sh --device cpu --parts tests,golden --program "$work/broken" --out "$work/broken_out" >"$work/log" 2>&1
[ $? = 1 ] && grep -q '^not ok - tests requests' "$work/log" && grep -q '^ok - golden pi_bf16' "$work/log"
check $? "a failed test shows in the exit code, and the rest still runs"
[ "$(printf '{\n "a": [\n  {\n   "b": 1.5\n  },\n  {\n   "b": "x"\n  }\n ],\n "c": true\n}\n' |
    awk -f tools/gpu/flatten.awk | tr '\t\n' '= ')" = "a.0.b=1.5 a.1.b=x c=true " ]
check $? "JSON is flattened"
mkdir "$work/hasty" && printf '#!/bin/sh\nexit 124\n' >"$work/hasty/timeout" && chmod +x "$work/hasty/timeout"
PATH=$work/hasty:$PATH sh tools/gpu_check.sh --device cpu --parts build --out "$work/none" >/dev/null 2>"$work/log"
[ $? = 1 ] && grep -q '^gpu_check: the build was ended at its limit of .* larger --minutes' "$work/log"
check $? "a build that takes too long says so, and how to go on"
sh tools/gpu_tree.sh --help | grep -q '^gpu_tree.sh - ' && ! sh tools/gpu_tree.sh --helpful 2>/dev/null
check $? "gpu_tree.sh says what it does"
# What the programs of device_check name is in the tree that is carried to a GPU.
sh tools/gpu_tree.sh --files "$work/tree"
check $? "the files of a tree"
subjects=$(build/release/device_check | grep -vE '^(tectum|experiments)$' | sed 's,^kernels$,kernels/*,; s,^,tests/,; s,$,.c,')
# shellcheck disable=SC2086
named=$(cat $subjects tests/experiments/*/*.c tools/gpu/*.sh tools/gpu_check.sh |
    grep -ohE '(/|"|[ =])(pipelines|policies|tests/(fixtures|golden|pipelines|graphs|policies))(/[A-Za-z0-9_.]+)+' |
    sed 's,^[/" =],,; s,[.]$,,; /[.]md$/d' | sort -u)
missing=$(for file in $named; do [ ! -e "$file" ] || [ -e "$work/tree/$file" ] || echo "$file"; done)
[ "$(echo "$named" | wc -l)" -gt 20 ] && [ -z "$missing" ]
check $? "it has every file that they name"
echo "$missing" | sed '/./!d; s/^/# /'

# Its programs are linked statically, and libmicrohttpd wants GnuTLS, of which there is no static library.
asked=$(for folder in $(pkg-config --variable=libdir libmicrohttpd); do nm -u "$folder/libmicrohttpd.a" 2>/dev/null; done |
    grep -o 'gnutls_[a-z0-9_]*' | sort -u)
missing=$(for name in $asked; do
    grep -q -e "\<$name\>" -e "^MISSING(${name#gnutls_})" tools/gateway/no_gnutls.c || echo "$name"
done)
[ -z "$missing" ]
check $? "tools/gateway/no_gnutls.c has what libmicrohttpd.a asks for ($(echo "$asked" | wc -w) functions)"
echo "$missing" | sed '/./!d; s/^/# /'

# --- three calls, with stand-ins ----------------------------------------------------------------

mkdir "$work/bin" "$work/cpu" && tar xzf "$work"/out/cpu_*_logs.tar.gz -C "$work/cpu"
cat >"$work/bin/nvidia-smi" <<'EOF'
#!/bin/sh
case "$*" in
*-l\ 2*) while :; do echo "1980, 2619, 350.00, 45"; sleep 1; done ;;
*name*) echo "NVIDIA H100 80GB HBM3" ;;
*driver_version*) echo 580.159.04 ;;
*) echo "1980 MHz, 2619 MHz, 700.00 W" ;;
esac
EOF
# Both run the program behind their options.
cat >"$work/bin/ncu" <<'EOF'
#!/bin/sh
[ "$BROKEN" != counters ] || [ "${*##* }" != gemm_bf16 ] || { echo "no permission to read counters" >&2; exit 1; }
while [ $# -gt 0 ] && [ ! -x "$1" ]; do shift; done
"$@" || exit 1
[ "$BROKEN" != unseen ] || [ "${*##* }" != rmsnorm ] || { echo "==WARNING== No kernels were profiled."; exit 0; }
echo "Duration us 20"
EOF
cat >"$work/bin/compute-sanitizer" <<'EOF'
#!/bin/sh
case "$BROKEN $*" in
access*memcheck*norm*) echo "ERROR SUMMARY: 1 error"; exit 9 ;;
hang*racecheck*) sleep 60 ;;
idle*memcheck*attention*) echo "ERROR SUMMARY: 0 errors"; exit 0 ;;
esac
while [ $# -gt 0 ] && [ ! -x "$1" ]; do shift; done
"$@" || exit 1
echo "ERROR SUMMARY: 0 errors"
EOF
# What it answers for benches is what they said on the CPU.
cat >"$work/bin/device_check" <<'EOF'
#!/bin/sh
says() { [ "$BROKEN" != "$1" ] || { echo "$2" >&2; exit 1; }; }
of() { cat "$CPU/$1.out"; }
case "$*" in
"tectum verify"*--format\ text\ tests/golden/pi/pi0_tiny) echo "ok 1" ;; # the probe
"tectum verify"*bf16*tests/golden/qwen*) [ "$BROKEN" != golden ] || { echo "not ok 7 - logits"; exit 1; }; echo "# 9 checks" ;;
"tectum verify"*) echo "# 9 checks" ;;
"tectum bench pipelines/suite/pi0_views2"*) says bench "the device was lost"; of pi0_views2 ;;
"tectum bench pipelines/suite/pi0_views3"*) of pi0_views3 | if [ "$BROKEN" = differs ]; then sed '0,/"equal": true/s//"equal": false/'; else cat; fi ;;
"tectum bench pipelines/suite/"*) file=${3##*/}; of "${file%.lua}" ;;
"tectum bench pipelines/pi05_libero.lua"*) of oxygen ;;
"tectum bench"*) of beside ;;
"tectum graph"*) exec build/release/device_check "$@" ;;
"experiments "*) says "$2" "no memory for $2"; for out; do :; done; mkdir -p "$out" && cp "$CPU/$2/suite.json" "$out" ;;
"kernels"*--layers*) printf '# {"kernel": "gemm_bf16", "layer": "text down", "us": 189.8, "copy_gb_s": 3000}\n# most time\n' ;;
schedule*) [ "$BROKEN" != test ] || { echo "not ok 2 - broken"; exit 1; }; echo "ok 1" ;;
*) echo "ok 1" ;;
esac
EOF
chmod +x "$work"/bin/*
# call N BROKEN: one call of three; its log, and the folder of its reports.
call() {
    rm -rf "$work/gpu"
    PATH=$work/bin:$PATH CPU=$work/cpu BROKEN=$2 sh tools/gpu_check.sh --call "$1" --minutes "${3:-8}" --size full \
        --program "$work/bin/device_check" --out "$work/gpu" >"$work/log" 2>&1
}
for number in 1 2 3; do
    call $number nothing && ! grep -q '^not ok' "$work/log" &&
        python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["gpu"] == "NVIDIA H100 80GB HBM3" and r["results"], r' \
            "$work"/gpu/h100_80gb_hbm3_*_call$number.json
    check $? "call $number of three, on a stand-in for an H100"
    [ $number != 2 ] || { grep -q '^# G2: pi0, 2 views, all: .* predicted .*(products)' "$work/log" && grep -q "G9.*copy's 3000 GB/s" "$work/log"; }
    check $? "and what it says of the machine"
done
# broken CALL WHAT LINE: the call ends with 1, its log has the line and what went well; the logs are kept.
broken() {
    call "$1" "$2" "${4:-}"
    [ $? = 1 ] && grep -q "^not ok - $3" "$work/log" && [ "$(grep -c '^not ok - ' "$work/log")" = 1 ] &&
        grep -q '^ok - ' "$work/log" && tar tzf "$work"/gpu/*_logs.tar.gz | grep -q results
    check $? "a stand-in for a failure: $2"
    grep '^not ok' "$work/log" | sed 's/^/# /'
}
broken 1 test 'tests schedule'
broken 1 golden 'golden qwen_bf16'
broken 2 bench 'bench pi0_views2 .*the device was lost'
broken 2 differs 'bench same_pi0_views3 .*actions differ'
broken 2 actionflow 'bench actionflow .*no memory'
broken 3 access 'sanitizer memcheck_kernels_.*1 error'
broken 3 counters 'profile gemm_bf16 .*no permission'
broken 3 unseen 'profile rmsnorm .*0 kernels'
broken 3 idle 'sanitizer memcheck_kernels_attention_bf16 .*no test ran'
broken 3 hang 'sanitizer racecheck_.*limit' 1

# --- with the emulator ----------------------------------------------------------------------------

# One order of threads, blocks and copies: tests/run.sh has the others.
cat >"$work/bin/emulated" <<'EOF'
#!/bin/sh
if [ "$1" = kernels ]; then
    shift
    set -- kernels --schedule 0 "$@"
fi
TECTUM_CUDA_PATIENCE=3600 exec build/release/emulator/device_check "$@"
EOF
chmod +x "$work/bin/emulated"
for number in $emulated; do
    begun=$(date +%s)
    PATH=$work/bin:$PATH sh tools/gpu_check.sh --call "$number" --minutes 480 --size tiny --side "$(nproc)" \
        --program "$work/bin/emulated" --out "$work/emulated" >"$work/log" 2>&1
    check $? "call $number on the emulator: $(grep -c '^ok' "$work/log") steps in $(($(date +%s) - begun)) s"
    sed -n '/^not ok/s/^/# /p; /^ok/s/^/#   /p' "$work/log"
done

if command -v shellcheck >/dev/null 2>&1; then
    shellcheck -x -s sh tools/gpu_check.sh tools/gpu_tree.sh tests/gpu_check.t
    check $? "shellcheck finds nothing"
fi
echo "1..$n"
exit $bad
