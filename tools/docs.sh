#!/bin/sh
# docs.sh - renew the generated parts of the documents.  tools/docs.sh [--check]
#
# A part stands between `<!-- from: COMMAND -->` and `<!-- end -->`, each on a line of its own, and
# is what COMMAND prints, run from the root with build/release/ in the path; the program there is built
# first, since an old one would print what is no longer so. --check builds nothing, changes nothing and fails when a part is stale, a link between documents leads nowhere, or text is hard to
# scan: a paragraph of more than 5 lines, or a line of more than 100 columns. Code, tables, lists,
# headings and generated parts are not counted as paragraphs; a line that cannot be broken may be
# longer. doc/measurements and doc/decisions keep the form that they were written in.
set -u
cd "$(dirname "$0")/.." || exit 1
check=
[ "${1:-}" != --check ] || check=1
PATH=$(pwd)/build/release:$PATH
export PATH
bad=0
if [ -z "$check" ]; then
    cmake --build build/release --target tectum >/dev/null || { echo "docs: the program does not build" >&2; exit 1; }
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# def FILE: a .def list as a table, from its macro lines: names and texts.
def() {
    sed -nE 's/^[A-Z_]+\(([a-z_0-9A-Z]+), (.*)\)$/| `\1` | \2 |/p' "$1" | sed 's/"//g'
}

# renew FILE: the document with its parts made anew.
renew() {
    inside=
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        "<!-- from: "*" -->")
            command=${line#"<!-- from: "} command=${command%" -->"}
            printf '%s\n' "$line"
            case $command in
            "def "*) def "${command#def }" ;;
            *) sh -c "$command" </dev/null || { echo "docs: $1: '$command' failed" >&2; return 1; } ;;
            esac
            inside=1 ;;
        "<!-- end -->") inside= ; printf '%s\n' "$line" ;;
        *) [ -n "$inside" ] || printf '%s\n' "$line" ;;
        esac
    done <"$1"
    [ -z "$inside" ] || { echo "docs: $1: a part has no end" >&2; return 1; }
}

# prose FILE: what is hard to scan in it, a line each. A character is one column, not its bytes.
prose() {
    LC_ALL=C tr -d '\200-\277' <"$1" | LC_ALL=C awk -v file="$1" '
        function close_paragraph() {
            if (lines > 5)
                printf "docs: %s:%d: a paragraph of %d lines; at most 5\n", file, first, lines
            lines = 0
        }
        /^ *```/ { close_paragraph(); code = !code; list = 0; next }
        code { next }
        /^<!-- from: / { close_paragraph(); generated = 1 }
        /^<!-- end -->/ { generated = 0; next }
        generated { next }
        /^[ \t]*$/ { close_paragraph(); blank = 1; next }
        /^(\||#|!\[)/ { close_paragraph(); list = 0; blank = 0; next }
        /^    / && blank && !list { next }
        {
            item = ($0 ~ /^ *([-*]|[0-9]+\.) /)
            if (item) { close_paragraph(); list = 1 }
            else if (blank && $0 !~ /^ /) list = 0
            blank = 0
            text = $0
            sub(/^ *([-*] |[0-9]+\. )?/, "", text)
            if (length($0) > 100 && text ~ / /)
                printf "docs: %s:%d: %d columns; at most 100\n", file, NR, length($0)
            if (!list && ++lines == 1) first = NR
        }
        END { close_paragraph() }'
}

for file in README.md CONTRIBUTING.md doc/*.md; do
    prose "$file" >"$work/prose"
    [ ! -s "$work/prose" ] || { cat "$work/prose"; bad=1; }
done
for file in *.md doc/*.md doc/*/*.md */README.md */*/README.md */*/*/README.md; do
    case $file in build/*) continue ;; esac
    [ -f "$file" ] || continue
    if grep -q '^<!-- from: ' "$file"; then
        if ! renew "$file" >"$work/new"; then bad=1
        elif ! cmp -s "$work/new" "$file"; then
            if [ -n "$check" ]; then
                echo "docs: $file is stale; run tools/docs.sh"
                diff -u "$file" "$work/new" | head -n 20
                bad=1
            else cat "$work/new" >"$file"; echo "docs: $file renewed"; fi
        fi
    fi
    for link in $(grep -oE '\]\([^)# ]+' "$file" | sed 's/^](//' | grep -v '^[a-z]*:'); do
        [ -e "$(dirname "$file")/$link" ] || { echo "docs: $file: no such file: $link"; bad=1; }
    done
done
# The index of decisions is the folder, in order.
grep -o '^| \[[0-9]*\](.*\.md)' doc/decisions/000-index.md | sed 's/^.*(//; s/)$//' >"$work/index"
ls doc/decisions | grep '^[0-9].*\.md$' | grep -v '^000-' | diff "$work/index" - >"$work/diff" || {
    echo "docs: doc/decisions/000-index.md is not its folder in order (> lacks there, < does not belong):"
    cat "$work/diff"
    bad=1
}
[ $bad -ne 0 ] || echo "docs: fresh"
exit $bad
