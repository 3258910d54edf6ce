#!/bin/sh
# sizes.t - functions of at most 60 lines, files of at most 500. Generated tables are exempt, and the
# length of a test file, which is a list of small functions.
cd "$(dirname "$0")/.." || exit 1
max_function=60 max_file=500 n=0 bad=0

sources() {
    for folder in base kernels ops graph policies tools tests; do
        [ ! -d "$folder" ] || find "$folder" -type f \( -name '*.[ch]' -o -name '*.inc' -o -name '*.cu' \
            -o -name '*.cuh' \) ! -path '*/tables/*' ! -path 'tests/golden/*'
    done
    [ ! -f tectum.h ] || echo tectum.h
}
report() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"
    else bad=1; echo "not ok $n - $1"; printf '%s\n' "$2" | sed 's/^/# /' >&2; fi
}

report "files have at most $max_file lines" "$(sources | grep -v '^tests/' | while read -r file; do
    lines=$(wc -l <"$file")
    [ "$lines" -le $max_file ] || echo "$file: $lines lines"
done)"

if ctags --version 2>/dev/null | grep -q 'Universal Ctags'; then
    tags=$(sources | ctags --languages=C --langmap=C:.c.h.inc.cu.cuh --c-kinds=f --fields=+ne \
        --output-format=u-ctags -f - -L - 2>/dev/null)
    count=$(printf '%s\n' "$tags" | grep -c '	end:')
    report "functions have at most $max_function lines ($count seen)" "$(printf '%s\n' "$tags" |
        awk -F'\t' -v max=$max_function '
            /^!/ { next }
            { first = last = 0
              for (i = 4; i <= NF; i++) {
                  if ($i ~ /^line:/) first = substr($i, 6)
                  if ($i ~ /^end:/) last = substr($i, 5)
              }
              if (last - first + 1 > max) print $2 ":" first ": " $1 ": " last - first + 1 " lines" }')"
    report "functions were found" "$([ "$count" -gt 100 ] || echo "only $count functions")"
else
    n=$((n + 1))
    echo "ok $n - functions have at most $max_function lines # SKIP universal-ctags is not installed"
fi
echo "1..$n"
exit $bad
