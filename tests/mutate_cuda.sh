#!/bin/sh
# mutate_cuda.sh - would the tests notice?  sh tests/mutate_cuda.sh [-p PRESET] [NAME-PATTERN...]
#
# Each line of tests/mutations.txt is a mistake that somebody could make in the CUDA device or where
# it is used. It is made in a copy, that one object is compiled and takes its place in a test of an
# emulator build, which must fail, crash or hang. A mistake that cannot be made (the source has
# changed), does not compile, or is not noticed is a failure here. TAP; the whole takes a few minutes
# on two cores.
set -u
cd "$(dirname "$0")/.." || exit 1
preset=release
[ "${1:-}" != -p ] || { preset=$2; shift 2; }
[ $# -gt 0 ] || set -- '*'
build=build/$preset/emulator jobs=$(nproc 2>/dev/null || echo 2)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# The tests that the table names, built and passing without any mistake.
lines=$(grep -v -e '^#' -e '^$' tests/mutations.txt)
{ { [ -f "build/$preset/CMakeCache.txt" ] || cmake --preset "$preset" -DTECTUM_CUDA=off; } && # as it was configured
    cmake --build "build/$preset" -j"$jobs" --target emulator; } \
    >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; exit 1; }

# test LIMIT BINARY TEST [SCHEDULE...]: run a test with another binary in its place; kernels until
# the first failure, in these schedules where the test names none.
cat >"$work/test" <<'EOF'
limit=$1 binary=$2 test=$3
shift 3
schedules=$*
set -f
set -- $test
shift
case $test in
*--schedule*) timeout "$limit" "$binary" --first --tier cuda --seed 5 "$@" || exit 1 ;;
kernels.t*)
    for schedule in $schedules; do
        timeout "$limit" "$binary" --first --tier cuda --seed 5 --schedule $schedule "$@" || exit 1
    done ;;
*) timeout "$limit" "$binary" "$@" || exit 1 ;;
esac
EOF

# one LINE NUMBER: 0 when the mistake is noticed; what happened is in NUMBER.out.
cat >"$work/one" <<'EOF'
work=$1 build=$2 number=$3
line=$(sed -n "${number}p" "$work/lines")
name=${line%% :: *} rest=${line#* :: }
file=${rest%% :: *} rest=${rest#* :: }
test=${rest%% :: *} edit=${rest#* :: }
unit=${file##* > } file=${file%% > *} # a header is compiled as a part of a unit
here=$work/$number
out=$work/$number.out
mkdir -p "$here/$(dirname "$file")" "$here/$(dirname "$unit")"
[ "$unit" = "$file" ] || cp "$unit" "$here/$unit"
sed "$edit" "$file" >"$here/$file" 2>"$out" || { echo "the edit is no sed expression" >>"$out"; exit 1; }
cmp -s "$file" "$here/$file" && { echo "the edit changes nothing in $file" >>"$out"; exit 1; }

# The command that compiled the unit, for the copy, in haste; a mistake may leave things
# unused.
root=$(pwd)
compiled=$(awk -v file="\"file\": \"$root/$unit\"" -v emulated="$build\"" '
    /"directory":/ { folder = $0 } /"command":/ { command = $0 }
    index($0, file) {
        found = folder "\n" command
        if (index(folder, emulated) || index(command, " -o emulator/")) exit # by make; by ninja
    }
    END { print found }' "$build/../compile_commands.json" |
    sed 's/^ *"[a-z]*": "//; s/",$//; s/\\"/"/g; s/\\\\/\\/g')
folder=$(echo "$compiled" | head -n 1) command=$(echo "$compiled" | tail -n 1)
[ -n "$command" ] || { echo "$build does not compile $unit" >>"$out"; exit 1; }
compiler=${command%% -*} options=-${command#* -} # the compiler may have a launcher in front
options=${options% -o *}
(cd "$folder" && eval "$compiler -I'$here' $options -O1 -g0 -w -o '$here/mutant.o' -c '$here/$unit'") \
    >>"$out" 2>&1 || { echo "the mutant does not compile" >>"$out"; exit 1; }

# Linked in place of the object; an object in front of a library is not pulled from it.
object=${command#* -o } object=${object%% *} binary=${test%% *} target=tests
[ "$binary" != tectum ] || target=tectum
link=$build/CMakeFiles/emulator_$target.dir/link.txt
if [ -f "$link" ]; then link=$(cat "$link")
else build=$build/.. && link=$(ninja -C "$build" -t commands -s "emulator/$target"); fi
link=$(echo "$link" | sed "s| [^ ]*$object | |; s| -o [^ ]*$target | $here/mutant.o -o $here/$binary |")
(cd "$build" && eval "$link") >>"$out" 2>&1 || { echo "the mutant does not link" >>"$out"; exit 1; }
# What hangs has ten times what the test takes, and half a minute.
at=$(grep -nxF -e "$(echo "$test" | sed 's/ --schedule [0-9]//')" "$work/tests" | cut -d: -f1)
limit=$((10 * $(cat "$work/seconds.$at") + 30))
if sh "$work/test" "$limit" "$here/$binary" "$test" 0 1 2 >>"$out" 2>&1; then
    echo "not noticed" >>"$out"
    exit 1
fi
rm -rf "$here"
touch "$work/$number.noticed"
EOF

n=0 bad=0
printf '%s\n' "$lines" >"$work/lines"
total=$(wc -l <"$work/lines")
chosen=$(for number in $(seq "$total"); do
    name=$(sed -n "${number}s/ :: .*//p" "$work/lines")
    for wanted in "$@"; do
        case $name in $wanted) echo "$number" && break ;; esac
    done
done)

# What is to fail with a mistake must pass without it (one schedule: the others are tried elsewhere).
cat >"$work/base" <<'EOF'
work=$1 build=$2
test=$(sed -n "${3}p" "$work/tests")
begin=$(date +%s)
sh "$work/test" 1200 "$build/${test%% *}" "$test" 0 >"$work/base.$3" 2>&1 && rm "$work/base.$3"
echo $(($(date +%s) - begin)) >"$work/seconds.$3"
EOF
for number in $chosen; do sed -n "${number}p" "$work/lines"; done |
    awk -F ' :: ' '{ sub(/ --schedule [0-9]/, "", $3); print $3 }' | sort -u >"$work/tests"
seq "$(wc -l <"$work/tests")" | xargs -I{} -P "$jobs" sh "$work/base" "$work" "$build" {} || :
for out in "$work"/base.*; do
    [ -f "$out" ] || continue
    n=$((n + 1)) bad=1
    echo "not ok $n - $(sed -n "${out##*.}p" "$work/tests") without a mistake"
    grep -E '^(#|not ok)' "$out" | head -n 5 >&2
done

printf '%s\n' $chosen | xargs -I{} -P "$jobs" sh "$work/one" "$work" "$build" {} || :
for number in $chosen; do
    n=$((n + 1))
    name=$(sed -n "${number}s/ :: .*//p" "$work/lines")
    if [ -f "$work/$number.noticed" ]; then echo "ok $n - $name"; continue; fi
    bad=1
    echo "not ok $n - $name"
    tail -n 5 "$work/$number.out" | sed 's/^/# /' >&2
done
echo "1..$n"
exit $bad
