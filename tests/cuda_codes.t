#!/bin/sh
# cuda_codes.t - nvcc's options for a list of devices: what is made code for, and what gets PTX where the
# toolkit is too old (cmake/cuda_codes.cmake). A script in the place of nvcc says what it knows.
cd "$(dirname "$0")/.." || exit 1
if ! command -v cmake >/dev/null 2>&1; then
    echo "1..0 # SKIP there is no cmake"
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=0 failed=0
printf '#!/bin/sh\nprintf "sm_75\\nsm_80\\nsm_86\\nsm_87\\nsm_89\\nsm_90\\n"\n' >"$work/old"
printf '#!/bin/sh\nprintf "sm_80\\nsm_87\\nsm_90\\nsm_100\\nsm_110\\nsm_120\\n"\n' >"$work/new"
printf '#!/bin/sh\nexit 1\n' >"$work/broken"
chmod +x "$work/old" "$work/new" "$work/broken"

# gives TEXT NVCC LIST OPTIONS: NVCC is old, new, broken or none; OPTIONS as they are printed.
gives() {
    n=$((n + 1))
    nvcc=
    [ "$2" = none ] || nvcc=-DCMAKE_CUDA_COMPILER=$work/$2
    if cmake "-DTECTUM_CUDA_ARCHITECTURES=$3" $nvcc -P cmake/cuda_codes.cmake >"$work/out" 2>"$work/err" &&
        [ "$(grep '^--generate' "$work/out")" = "$4" ] || { [ "$4" = refused ] && grep -q "is no device" "$work/err"; }
    then echo "ok $n - $1"
    else failed=1; echo "not ok $n - $1"; head -n 3 "$work/out" "$work/err" | sed 's/^/# /' >&2; fi
}
of() { echo "--generate-code=arch=compute_$1,code=[$2]"; }

newest="$(of 80 sm_80,sm_87) $(of 90a sm_90a) $(of 90 sm_100,sm_110,sm_120,compute_90)"
gives "all, with a toolkit that knows them" new all "$newest"
gives "all, with one that cannot be asked" broken all "$newest"
gives "all, with none" none all "$newest"
gives "all, with an old one: PTX for what is newer" old all \
    "$(of 80 sm_80,sm_87) $(of 90a sm_90a) $(of 90 compute_90)"
n=$((n + 1))
if grep -q "makes no code for 100 110 120" "$work/out"; then echo "ok $n - which is said"
else failed=1; echo "not ok $n - which is said"; fi
gives "a new device alone, with an old one" old 120-real "$(of 90 compute_90)"
gives "its own kind of code, with an old one" old 100a-real "$(of 90 compute_90)"
gives "its own kind of code, of the PTX of 9.0" new "90a-real;100a-real;110a" \
    "$(of 90a sm_90a) $(of 90 sm_100a,sm_110a,compute_90)"
gives "a list with PTX" old "80;90a-real" "$(of 80 sm_80,compute_80) $(of 90a sm_90a)"
gives "an older device" new 75-real refused
gives "no number" new native refused
gives "a family" new 100f refused
echo "1..$n"
exit $failed
