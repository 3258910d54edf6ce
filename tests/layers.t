#!/bin/sh
# layers.t - includes only ever point down: the floors, and the folders inside graph/ and graph/run/ in their order.
cd "$(dirname "$0")/.." || exit 1
floors="base kernels ops graph policies tools"
folders="transform kv memory model nodes load compile encoder run live"
parts="launch recall session loop engine"
n=0 bad=0

# includes FOLDER PATTERN: the include lines below FOLDER whose path matches PATTERN.
includes() {
    grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]+\"$2" "$1" --include='*.[ch]' \
        --include='*.inc' --include='*.def' --include='*.cu' --include='*.cuh'
}
# report TEXT HITS: one line of TAP, and what was found.
report() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else bad=1; echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /' >&2; fi
}
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP no such folder"; }

above="$floors"
for floor in $floors; do
    above=${above#*"$floor"}
    if [ ! -d "$floor" ]; then skip "$floor"; continue; fi
    pattern=$(echo $above tests | tr ' ' '|')
    report "$floor includes nothing above it" "$(includes "$floor" "($pattern)/")"
done

# ordered FOLDER NAMES: folders inside FOLDER include none that is named after them, and all have a name.
ordered() {
    above="$2"
    for folder in $2; do
        above=${above#*"$folder"}
        [ -n "$above" ] || continue
        if [ ! -d "$1/$folder" ]; then skip "$1/$folder"; continue; fi
        pattern=$(echo $above | tr ' ' '|')
        report "$1/$folder includes no folder after it" "$(includes "$1/$folder" "$1/($pattern)/")"
    done
    strange=
    for folder in "$1"/*/; do
        [ -d "$folder" ] || continue
        folder=${folder#"$1"/} folder=${folder%/}
        case " $2 " in *" $folder "*) ;; *) strange="$strange $1/$folder has no place in the order;" ;; esac
    done
    report "every folder of $1/ has its place in the order" "$strange"
}
ordered graph "$folders"
ordered graph/run "$parts"
report "sessions and the loop do not know each other" "$(includes graph/run/loop 'graph/run/session/')"

# A path is written from the root, so that the checks above see every one.
pattern=$(echo $floors tests | tr ' ' '|')
found=$(for floor in $floors tests; do [ ! -d "$floor" ] || includes "$floor" ""; done |
    grep -vE "include[[:space:]]+\"(($pattern)/|tectum\.h\"|tectum_client\.h\"|version\.h\")")
report "includes are written from the root" "$found"

echo "1..$n"
exit $bad
