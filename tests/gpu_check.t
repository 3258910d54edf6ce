#!/bin/sh
# gpu_check.t - tools/gpu_check.sh runs through on the CPU, writes its two files, and says what is wrong.
cd "$(dirname "$0")/.." || exit 1
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

sh tools/gpu_check.sh --device cpu --parts build,tests,golden,bench --minutes 5 --out "$work/out" >"$work/log" 2>&1
check $? "every part ends well"
grep '^not ok' "$work/log" | sed 's/^/# /'
set -- "$work"/out/cpu_*.json
[ -s "$1" ] && python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert len(r["benches"]) == 6, r' "$1"
check $? "the JSON holds six benches"
set -- "$work"/out/cpu_*.md
[ -s "$1" ] && grep -q 'G13.*byte for byte' "$1" && ! grep -q 'DIFFER' "$1"
check $? "the page has the goals"

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
if command -v shellcheck >/dev/null 2>&1; then
    shellcheck -x -s sh tools/gpu_check.sh tools/gpu_tree.sh tests/gpu_check.t
    check $? "shellcheck finds nothing"
fi
echo "1..$n"
exit $bad
