#!/bin/sh
# headers.t - each header compiles alone as C17, those of the emulator as C++, the public one as
# both. A header that a C file of the floors includes first is compiled alone by every build, with
# warnings as errors in its presets: here only its guard is looked at, and the others are compiled.
# Not alone, by their own first lines: what a tier includes after its vector.h (kernels/panels/).
cd "$(dirname "$0")/.." || exit 1
cc=${CC:-cc} cxx=${CXX:-c++}
command -v "$cc" >/dev/null 2>&1 || { echo "1..0 # SKIP no C compiler ($cc)"; exit 0; }
flags="-D_GNU_SOURCE -DTECTUM_SOURCE=\".\" -I. $(pkg-config --cflags lua5.4 jansson 2>/dev/null)"
flags="$flags -Wall -Wextra -Wpedantic -Werror -Wno-unused-function -fsyntax-only"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# One line of TAP without its number for each header, in order.
cat >"$work/one" <<'END'
#!/bin/sh
# one HEADER: compile it twice over, for its guard.
extra= language=c std=c17 machine=
case $1 in kernels/cuda/* | tests/cuda/*) extra="-isystem tests/cuda_emulator/include" ;;
tests/cuda_emulator/stand_in.h) extra="-isystem tests/cuda_emulator/include" ;;
tests/cuda_emulator/*) extra="-isystem tests/cuda_emulator/include" language=c++ std=c++17 ;;
*/avx2/*) extra="-mavx2 -mfma" machine=x86_64 ;;
*/avx512/*) extra="-mavx512f -mavx512bw -mavx512vl -mfma" machine=x86_64 ;;
*/neon/*) machine=aarch64 ;; esac
if grep -qxF "$1" "$BUILT"; then echo "ok - $1, first in a C file"; exit 0; fi
case $MACHINE in "$machine"*) ;; *) echo "ok - $1 # SKIP it is for $machine"; exit 0 ;; esac
if found=$(printf '#include "%s"\n#include "%s"\nint end_of_test;\n' "$1" "$1" |
    $COMPILE -std=$std $extra -x $language - 2>&1); then echo "ok - $1"
else echo "not ok - $1"; printf '%s\n' "$found" | head -10 | sed 's/^/# /' >&2; fi
END
COMPILE="$cc $flags" MACHINE=$($cc -dumpmachine)
BUILT=$work/built
export COMPILE MACHINE BUILT
# Headers that are the first include of a C file which every build compiles, and have a guard.
find base kernels ops graph policies tools tests/judge tests/experiments -name '*.c' |
    grep -vE '^kernels/(cuda|neon|avx2|avx512)/' | xargs awk '
        FNR == 1 { done = 0 }
        !done && /^#[ ]*include/ { done = 1; if (split($0, part, "\"") == 3) print part[2] }' |
    sort -u | while read -r header; do [ ! -f "$header" ] || echo "$header"; done >"$work/first"
xargs -r -a "$work/first" awk '
    FNR == 1 { guard = ""; done = 0 }
    done || !/^#/ { next }
    !guard && /^#ifndef / { guard = $2; next }
    { done = 1; if (guard && $1 == "#define" && $2 == guard) print FILENAME }' >"$work/built"
for folder in base kernels ops graph policies tools tests; do
    [ ! -d "$folder" ] || find "$folder" -name '*.h' ! -path 'kernels/panels/*' ! -path 'tests/golden/*'
done | LC_ALL=C sort | xargs -n1 -P2 sh "$work/one" >"$work/lines"

n=$(wc -l <"$work/lines")
for public in tectum.h tectum_client.h; do
    COMPILE="$cc -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I." sh "$work/one" $public
    if command -v "$cxx" >/dev/null 2>&1; then
        if printf '#include "%s"\nint main() { return 0; }\n' $public |
            $cxx -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. -x c++ - >&2
        then echo "ok - $public as C++"; else echo "not ok - $public as C++"; fi
    else echo "ok - $public as C++ # SKIP no C++ compiler"; fi
done >>"$work/lines"

awk '{ n++; sub(/ok - /, "ok " n " - "); print } END { print "1.." n }' "$work/lines"
[ "$n" -gt 0 ] && ! grep -q '^not ok' "$work/lines"
