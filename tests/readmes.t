#!/bin/sh
# readmes.t - the README of a folder of graph/ or graph/run/ names each of its .c files, and no file that is not there;
# the one of doc/ leads to each page of measurements once.
cd "$(dirname "$0")/.." || exit 1
n=0 failed=0
report() { # report TEXT WRONG
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else failed=1; echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /' >&2; fi
}
for folder in graph/*/ graph/run/*/; do
    page=${folder}README.md
    missing=$(for file in "$folder"*.c; do
        [ -f "$file" ] || continue
        name=$(basename "$file" .c)
        grep -q "\`$name[.\`]" "$page" || echo "$page does not name $name.c"
    done)
    report "$page names every file" "$missing"
    gone=$(grep -E '^\| `' "$page" | cut -d '|' -f 2 | grep -oE '`[a-z0-9_]+\.(\[hc\]|c|h|def)`' | tr -d '`' |
        sed -E 's/(.*)\.\[hc\]/\1.h\n\1.c/' | while read -r file; do
        [ -f "$folder$file" ] || echo "$page names $file, which is not there"
    done)
    report "$page names no other file" "$gone"
done
lost=$(for page in doc/measurements/*.md; do
    times=$(grep -o "](measurements/$(basename "$page"))" doc/README.md | wc -l)
    [ "$times" -eq 1 ] || echo "doc/README.md leads to $page $times times"
done)
report "doc/README.md leads to each page of measurements once" "$lost"
echo "1..$n"
exit $failed
