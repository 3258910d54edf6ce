#!/bin/sh
# used.t - what a header of the product declares, a program calls: functions for tests alone lie in tests/.
#
# Programs are the library and the tools, `tectum verify` (tests/judge/) and the papers' experiments
# (tests/experiments/). tectum.h is for programs outside of this tree, and is not looked at.
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=0 bad=0
report() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else bad=1; echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /' >&2; fi
}

# names FILE...: `declared NAME FILE` for each function of a header, `used NAME` for each use. A name
# with nothing but words and stars before it, from the first column on, is a declaration or a
# definition; every other place in code is a use. Comments and strings are no code.
names() {
    awk '
        FNR == 1 { comment = 0 }
        {
            code = ""
            rest = $0
            while (rest != "") {
                if (comment) {
                    if (!(at = index(rest, "*/"))) break
                    comment = 0
                    rest = substr(rest, at + 2)
                } else if (match(rest, /"([^"\\]|\\.)*"|\/[*\/]/)) {
                    code = code substr(rest, 1, RSTART - 1) " "
                    if (substr(rest, RSTART, 2) == "//") break
                    comment = substr(rest, RSTART, 2) == "/*"
                    rest = substr(rest, RSTART + RLENGTH)
                } else { code = code rest; break }
            }
            if (match(code, /^([A-Za-z_][A-Za-z0-9_]*[ *]+)*tec_[a-z0-9_]+\(/)) {
                head = substr(code, 1, RLENGTH - 1)
                code = substr(code, RLENGTH)
                sub(/.*[ *]/, "", head)
                if (FILENAME ~ /\.h$/ && FILENAME !~ /^tests\//) print "declared", head, FILENAME
            }
            gsub(/(struct|union|enum) tec_[A-Za-z0-9_]+/, "", code)
            while (match(code, /tec_[A-Za-z0-9_]+/)) {
                print "used", substr(code, RSTART, RLENGTH)
                code = substr(code, RSTART + RLENGTH)
            }
        }' "$@"
}

find base kernels ops graph policies tools tests/judge tests/experiments -type f \( -name '*.[ch]' \
    -o -name '*.def' -o -name '*.inc' -o -name '*.cu' -o -name '*.cuh' \) >"$work/files"
# No path has a space in it.
# shellcheck disable=SC2046
names $(cat "$work/files") | sort -u >"$work/names"
count=$(grep -c '^declared ' "$work/names")
report "functions are called by more than tests ($count seen)" "$(awk '
    $1 == "declared" { file[$2] = $3 }
    $1 == "used" { used[$2] = 1 }
    END { for (name in file) if (!(name in used)) print file[name] ": " name " has no caller but tests" }
    ' "$work/names" | sort)"
report "functions were found" "$([ "$count" -gt 500 ] || echo "only $count declarations")"
echo "1..$n"
exit $bad
